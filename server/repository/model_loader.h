#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/result.h"
#include "colocation/servable.h"
#include "server/memory/heap_in_use.h"
#include "server/repository/layout.h"
#include "server/repository/override_files.h"
#include "server/repository/repository_options.h"
#include "server/repository/warmup.h"
#include "server/repository/worker.h"

namespace inference {
class ModelConfig;
}

namespace tandem::repository {

// What a version was made from; as long as it is the same, so is the version.
struct VersionSource {
  std::shared_ptr<const inference::ModelConfig> given;  // As read, before completion.
  std::filesystem::path folder;
  std::vector<FileStamp> shared_files;
  std::vector<FileStamp> files;

  [[nodiscard]] bool Same(const VersionSource& other) const;
};

// A version that can be served. All parts are immutable and shared by the repository's snapshots and their readers.
struct LoadedVersion {
  std::shared_ptr<Servable> servable;
  std::shared_ptr<const inference::ModelConfig> config;  // Completed.
  std::shared_ptr<const VersionSource> source;
  std::shared_ptr<const ModelSignature> graph;  // Of its file, before the configuration had its say.
  std::shared_ptr<const SessionRequest> request;
};

// A served version that was loaded once more, so that what its nodes take is noted, for one user.
struct ProfiledVersion {
  std::shared_ptr<Servable> served;  // Shared with the repository.
  GraphExtent extent;
  std::optional<WarmupSample> sample;       // The first of model_warmup; none when it has none.
  std::shared_ptr<TemporaryFolder> folder;  // Holds one file when the session has gone.
  std::unique_ptr<InferenceSession> session;
};

// A model about to be loaded: its folder, its configuration and the versions that are to be served.
struct LoadPlan {
  ModelFolder folder;
  std::shared_ptr<const inference::ModelConfig> given;
  std::vector<std::int64_t> versions;
  std::shared_ptr<TemporaryFolder> keep;  // Set when the folder is a temporary one.
};

// Turns folders into servables. Called by ModelRepository. Thread-safe. Nothing thrown
// below it passes through.
class ModelLoader {
 public:
  // `options` and `factory` are borrowed from the repository's owner. Servables are destroyed on `graves`, so that the
  // thread that answers the last request of an old version does not pay for it.
  ModelLoader(const RepositoryOptions& options, SessionFactory& factory, std::shared_ptr<Worker> graves)
      : options_(options), factory_(factory), graves_(std::move(graves)) {}

  // Reads and checks the configuration: the folder's own, or `config_json` in its place.
  [[nodiscard]] Result<LoadPlan> Plan(ModelFolder folder, const std::optional<std::string>& config_json,
                                      std::shared_ptr<TemporaryFolder> keep) const;

  // Makes one version and warms it up; `previous` itself when nothing that it was made from has changed. `hurry`
  // ends the warm-up, also within a run: the version then starts cold.
  [[nodiscard]] Result<LoadedVersion> Load(const LoadPlan& plan, std::int64_t version, const LoadedVersion* previous,
                                           CancelToken& hurry) const;

  // What a file would take and give under a configuration that was checked, without serving it.
  [[nodiscard]] Result<ModelSignature> ReadSignature(const std::string& model, const inference::ModelConfig& given,
                                                     const std::filesystem::path& file) const;

  // `check` sees all but the session, before that is loaded. kConflict when its file has changed since it was loaded.
  using ProfileCheck = std::function<Status(const ProfiledVersion&)>;
  [[nodiscard]] Result<ProfiledVersion> OpenProfiled(const LoadedVersion& loaded,
                                                     const std::filesystem::path& temporary,
                                                     const ProfileCheck& check) const;

 private:
  [[nodiscard]] Result<LoadPlan> PlanUnguarded(ModelFolder folder, const std::optional<std::string>& config_json,
                                               std::shared_ptr<TemporaryFolder> keep) const;
  [[nodiscard]] Result<LoadedVersion> LoadUnguarded(const LoadPlan& plan, std::int64_t version,
                                                    const LoadedVersion* previous, CancelToken& hurry) const;
  // What runs of a warm-up took.
  struct WarmTimes {
    std::vector<WarmRun> samples;  // The user's word of what requests are like.
    std::vector<WarmRun> zeros;
  };
  [[nodiscard]] Result<WarmTimes> WarmUp(const LoadPlan& plan, const ModelSettings& settings, InferenceSession& session,
                                         CancelToken& hurry) const;
  // What is known of the version's runs before the first request, from its warm-up.
  static void Teach(const Servable& servable, RunWidth width, const WarmTimes& times);
  // A second session for runs on one thread, warmed up; an error where the version has to do without one.
  struct NarrowSession {
    std::unique_ptr<InferenceSession> session;
    bool shared = false;  // Has its weights from the other session.
    WarmTimes times;
  };
  [[nodiscard]] Result<NarrowSession> LoadNarrow(const LoadPlan& plan, const VersionSource& source,
                                                 SessionRequest request, const ModelSettings& settings,
                                                 CancelToken& hurry) const;
  // For what is written while sessions are made; null: there is none.
  [[nodiscard]] std::shared_ptr<TemporaryFolder> MakeScratch() const;
  // Has somebody count what a version takes. What that returns goes with the version.
  [[nodiscard]] std::shared_ptr<void> CountMemory(const SessionRequest& request, const VersionSource& source,
                                                  const ModelSettings& settings, std::uint64_t sessions,
                                                  std::optional<std::uint64_t> measured) const;
  // The model's folder as it is now; kConflict when the files of that version are not those of `source` any more.
  [[nodiscard]] Result<ModelFolder> FolderOf(const std::string& model, std::int64_t version,
                                             const VersionSource& source) const;
  void Log(LogLevel level, const std::string& text) const;

  const RepositoryOptions& options_;
  SessionFactory& factory_;
  const std::shared_ptr<Worker> graves_;
  mutable HeapGrowth heap_;
};

}  // namespace tandem::repository
