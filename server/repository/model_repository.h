#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "colocation/servable.h"
#include "server/repository/model_loader.h"
#include "server/repository/repository_options.h"
#include "server/repository/snapshot_cell.h"

namespace tandem::repository {

// What may come with a load call in place of what lies on disk.
struct LoadOptions {
  std::optional<std::string> config_json;
  OverrideFiles files;  // Needs config_json.
};

enum class ModelState { kReady, kUnavailable, kLoading, kUnloading };

// "READY", …: the protocol's spelling.
[[nodiscard]] std::string_view ModelStateName(ModelState state);

struct IndexEntry {
  std::string name;
  std::string version;  // Empty when the model has none that is known.
  ModelState state = ModelState::kUnavailable;
  std::string reason;                         // Why it is not ready; or, when ready, why the last reload failed.
  std::map<std::string, std::string> origin;  // Of one that is ready: what its file says of where it came from.
};

// What the newest served version of a model takes and gives, and what a file does that may become its successor.
struct Succession {
  ModelSignature served;
  ModelSignature successor;
};

struct StartupFailure {
  std::string model;
  Error error;
};

// The models that are served. Made by main(), asked by every front end. Thread-safe.
//
// Find() is the request path: it reads an immutable snapshot. Everything that changes what is served builds new
// servables aside and then swaps the snapshot, so a request sees the old version or the new one, and whoever holds a
// servable keeps it. Operations on one model are in turn; on different models side by side.
//
// A version is replaced when its successor has loaded. When any version that should be served fails, those that are
// served stay, and the index says why.
class ModelRepository {
 public:
  using Done = std::function<void(Status)>;

  // `factory` is borrowed and must outlive the repository and every servable found in it.
  ModelRepository(RepositoryOptions options, SessionFactory& factory);
  ~ModelRepository();
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;

  // Loads what the mode asks for, then starts polling. Blocks; the other calls may be made meanwhile. An error only
  // when a repository cannot be read: models that fail are in StartupFailures(), for the caller to weigh.
  [[nodiscard]] Status Start();
  [[nodiscard]] std::vector<StartupFailure> StartupFailures() const;
  // From now on no model begins to load, and those that have begun end as soon as the runtime lets them.
  void StopLoading();

  // The version to run, the highest served one when `version` is empty. kNotFound: no such model or version, or it is
  // not meant to be served, like one that was unloaded. kInvalidArgument: the version is not a number. kUnavailable: it
  // should be served, but is still loading or has failed to load.
  [[nodiscard]] Result<std::shared_ptr<Servable>> Find(std::string_view name, std::string_view version) const;

  // Errors as Find().
  [[nodiscard]] Result<std::shared_ptr<const inference::ModelConfig>> Config(std::string_view name,
                                                                             std::string_view version) const;
  // The versions being served, ascending.
  [[nodiscard]] Result<std::vector<std::string>> Versions(std::string_view name) const;
  [[nodiscard]] bool IsReady(std::string_view name, std::string_view version) const;
  // Why it is not: kUnavailable for a model that is known and not served, kNotFound for what is not known.
  [[nodiscard]] Status CheckReady(std::string_view name, std::string_view version) const;
  // Start() has ended and every model that should be served is.
  [[nodiscard]] bool AllReady() const;
  [[nodiscard]] std::vector<IndexEntry> Index(bool ready_only) const;
  // All that is served, by name and version.
  [[nodiscard]] std::vector<std::shared_ptr<Servable>> Snapshot() const;

  // Whether models can be loaded and unloaded by a call; kUnavailable when not.
  [[nodiscard]] Status CheckExplicit() const;
  // Only in kExplicit, else kUnavailable. Blocks while the model loads: not for a thread that serves connections.
  [[nodiscard]] Status Load(const std::string& name, LoadOptions options);
  [[nodiscard]] Status Unload(const std::string& name);
  // Unload ends the warm-up of a load of the model that is under way.
  //
  // The same on the repository's worker; `done` is called there, once, also when the repository is going away.
  void LoadAsync(std::string name, LoadOptions options, Done done);
  void UnloadAsync(std::string name, Done done);

  // Looks at one model on the disk again and loads what is new or changed of it, in every mode; others are left alone.
  // kConflict when it is not loaded, or is served from what came with a load call. When it fails to load, what was
  // served still is. Blocks.
  [[nodiscard]] Status Reload(const std::string& name);
  // Loads a file as the model's next version would be, and lets it go. Errors as Find(), or of the load. Blocks.
  [[nodiscard]] Result<Succession> TrySuccessor(const std::string& name, const std::filesystem::path& file) const;
  // Loads a served version once more, so that what its nodes take is noted. Errors as Find(), or of the check or the
  // load. Blocks.
  [[nodiscard]] Result<ProfiledVersion> OpenProfiled(std::string_view name, std::string_view version,
                                                     const ModelLoader::ProfileCheck& check) const;

  // Looks at the disk again and loads what is new or changed, and unloads what has gone. In kExplicit only models that
  // are loaded are looked at, and new ones when load_models has "*". A model that failed is tried again when it has
  // changed, or at once with `retry_failed`. An error when a repository cannot be read; then nothing changes. Failures
  // of models are in the index and the log.
  [[nodiscard]] Status Rescan(bool retry_failed = false);
  // Writes down what was learnt of runs, on the repository's worker. A failure is in the log, once.
  void SaveRunsAsync();
  // Rescan() on the repository's worker, trying again what failed: for a person's word, like SIGHUP.
  void RescanAsync(Done done);

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  // Versions ascend. Immutable once published; shared with its readers.
  using Serving = std::unordered_map<std::string, std::vector<LoadedVersion>, NameHash, std::equal_to<>>;

  // All that is known of one model.
  struct Entry {
    bool busy = false;  // An operation owns the entry; others wait for it to end.
    bool wanted = false;
    bool unloaded = false;                     // By somebody's word: a rescan leaves it alone.
    bool overridden = false;                   // Served from what came with a load call: a rescan leaves it alone.
    ModelState activity = ModelState::kReady;  // kLoading or kUnloading while busy with it.
    std::shared_ptr<CancelToken> hurry;        // While loading; shared with whoever cannot wait for the warm-up.
    std::map<std::int64_t, LoadedVersion> served;
    std::map<std::int64_t, std::string> missing;               // Versions that are not served, and why.
    std::map<std::int64_t, std::weak_ptr<Servable>> draining;  // Unloaded, with requests still under way.
    std::string reason;                                        // Of the last failed load; empty when it went well.
    std::optional<Result<ModelFolder>> attempted;              // The files as the last load saw them.
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  class Lease;
  struct LoadOutcome;

  [[nodiscard]] Result<LoadedVersion> FindVersion(std::string_view name, std::string_view version) const;
  [[nodiscard]] Error WhyNotServed(std::string_view name) const;

  // Whether a load is somebody's wish, or only brings what is served up to date with the disk.
  enum class LoadKind { kWish, kRefresh };
  [[nodiscard]] Status LoadModel(const std::string& name, const LoadOptions& options, LoadKind kind);
  [[nodiscard]] LoadOutcome Build(const std::string& name, const LoadOptions& options,
                                  const std::map<std::int64_t, LoadedVersion>& served, CancelToken& hurry) const;
  [[nodiscard]] Status Apply(Lease& lease, LoadOutcome outcome);
  // Ends the warm-up of a load of this model that is under way; without a name, of all models.
  void HurryLoading(std::optional<std::string_view> name);
  [[nodiscard]] Status UnloadModel(const std::string& name, bool forget);
  [[nodiscard]] std::vector<StartupFailure> LoadAll(const std::vector<std::string>& names);
  [[nodiscard]] std::vector<std::string> NoteScan(const RepositoryScan& scan, bool retry_failed);
  // Where files that come with a load call are written.
  [[nodiscard]] std::filesystem::path TemporaryParent() const;
  void Publish() REQUIRES(mu_);
  void Post(std::move_only_function<Status()> operation, Done done);
  void PollLoop();
  void Log(LogLevel level, const std::string& text) const;

  // Constant after construction.
  const RepositoryOptions options_;
  const std::shared_ptr<Worker> worker_;  // Shared with the deleters of servables, which may outlive the repository.
  const ModelLoader loader_;

  SnapshotCell<Serving> serving_;
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};

  mutable Mutex mu_;
  CondVar idle_;       // An entry is no longer busy.
  CondVar poll_wake_;  // The repository is stopping.
  Entries entries_ GUARDED_BY(mu_);
  std::vector<StartupFailure> startup_failures_ GUARDED_BY(mu_);
  // The worker's thread only.
  std::string save_failure_;
  // Start() and the destructor only.
  std::thread poller_;
};

}  // namespace tandem::repository
