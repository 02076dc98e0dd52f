// The part of ModelRepository that changes what is served.

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "api/base/format.h"
#include "api/base/thread_name.h"
#include "server/repository/model_name.h"
#include "server/repository/model_repository.h"

namespace tandem::repository {

// The right to change one entry: waits for its turn, marks the entry busy, and frees it at the end. The entry cannot go
// away meanwhile; its fields are still read and written under mu_.
class ModelRepository::Lease {
 public:
  // Null when there is no such entry and `create` is false.
  static std::unique_ptr<Lease> Take(ModelRepository& repository, const std::string& name, ModelState activity,
                                     bool create) {
    const MutexLock lock(repository.mu_);
    while (true) {
      auto found = repository.entries_.find(name);
      const bool is_new = found == repository.entries_.end();
      if (is_new) {
        if (!create) return nullptr;
        found = repository.entries_.try_emplace(name).first;
      }
      if (!found->second.busy) {
        found->second.busy = true;
        found->second.activity = activity;
        return std::unique_ptr<Lease>(new Lease(repository, name, found->second, is_new));
      }
      repository.idle_.Wait(repository.mu_);
    }
  }

  ~Lease() {
    const MutexLock lock(repository_.mu_);
    if (forget_) {
      repository_.entries_.erase(name_);
    } else {
      entry_.busy = false;
      entry_.activity = ModelState::kReady;
      entry_.hurry.reset();
    }
    repository_.idle_.NotifyAll();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Under the repository's mu_.
  [[nodiscard]] Entry& entry() { return entry_; }
  [[nodiscard]] bool is_new() const { return is_new_; }
  void Forget() { forget_ = true; }

 private:
  Lease(ModelRepository& repository, std::string name, Entry& entry, bool is_new)
      : repository_(repository), name_(std::move(name)), entry_(entry), is_new_(is_new) {}

  ModelRepository& repository_;
  const std::string name_;
  Entry& entry_;
  const bool is_new_;
  bool forget_ = false;
};

// What a load came to, before it is applied.
struct ModelRepository::LoadOutcome {
  Result<ModelFolder> folder;
  bool overridden = false;
  std::optional<Error> error;  // Of the model as a whole.
  std::map<std::int64_t, LoadedVersion> loaded;
  std::map<std::int64_t, Error> failed;
};

std::filesystem::path ModelRepository::TemporaryParent() const {
  std::error_code ignored;
  return options_.temporary_folder.empty() ? std::filesystem::temp_directory_path(ignored) : options_.temporary_folder;
}

Status ModelRepository::Start() {
  RemoveAbandonedFolders(TemporaryParent());
  if (!options_.weights_folder.empty()) RemoveAbandonedFolders(options_.weights_folder);
  const auto scan = ScanRepositories(options_.roots);
  if (!scan) return std::unexpected(scan.error());
  for (const std::string& ignored : scan->ignored) Log(LogLevel::kWarning, ignored);
  const std::vector<std::string> due = NoteScan(*scan, /*retry_failed=*/false);
  std::vector<StartupFailure> failures = LoadAll(due);
  {
    const MutexLock lock(mu_);
    startup_failures_ = std::move(failures);
  }
  if (stopping_) return {};
  started_ = true;
  if (options_.mode == ControlMode::kPoll && !poller_.joinable()) poller_ = std::thread([this] { PollLoop(); });
  return {};
}

// Makes the entries of what is on disk and of what the command line names, and says which of them are to be loaded.
std::vector<std::string> ModelRepository::NoteScan(const RepositoryScan& scan, bool retry_failed) {
  const bool all = options_.mode != ControlMode::kExplicit || std::ranges::contains(options_.load_models, "*");
  std::vector<std::string> due;
  const MutexLock lock(mu_);
  for (const auto& [name, folder] : scan.models) {
    Entry& entry = entries_[name];
    if (all && !entry.unloaded) entry.wanted = true;
  }
  if (options_.mode == ControlMode::kExplicit && !started_) {
    for (const std::string& name : options_.load_models) {
      if (name != "*") entries_[name].wanted = true;
    }
  }
  for (const auto& [name, entry] : entries_) {
    if (!entry.wanted || entry.overridden) continue;
    const auto found = scan.models.find(name);
    if (found == scan.models.end()) {
      if (!entry.attempted) due.push_back(name);
      continue;
    }
    const Result<ModelFolder>& now = found->second;
    const bool same = entry.attempted && entry.attempted->has_value() == now.has_value() &&
                      (now ? (*entry.attempted)->SameFiles(*now) : entry.attempted->error() == now.error());
    if (!same || (retry_failed && !entry.reason.empty())) due.push_back(name);
  }
  return due;
}

std::vector<StartupFailure> ModelRepository::LoadAll(const std::vector<std::string>& names) {
  std::atomic<std::size_t> next{0};
  std::vector<Status> results(names.size());
  const auto work = [&] {
    for (std::size_t i = next++; i < names.size() && !stopping_; i = next++) {
      try {
        results[i] = LoadModel(names[i], {}, LoadKind::kWish);
      } catch (const std::exception& e) {
        results[i] = Fail(ErrorCode::kInternal, "model '{}' failed to load: {}", names[i], Quotable(e.what()));
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < options_.loading_threads && static_cast<std::size_t>(i) < names.size(); ++i) {
      others.emplace_back(work);
    }
    work();
  }
  std::vector<StartupFailure> failures;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!results[i]) failures.push_back({names[i], results[i].error()});
  }
  return failures;
}

Status ModelRepository::LoadModel(const std::string& name, const LoadOptions& options, LoadKind kind) {
  const bool wish = kind == LoadKind::kWish;
  const auto lease = Lease::Take(*this, name, ModelState::kLoading, /*create=*/wish);
  if (!lease) return Fail(ErrorCode::kConflict, "model '{}' is not loaded", Quotable(name));
  std::map<std::int64_t, LoadedVersion> served;
  const auto hurry = std::make_shared<CancelToken>();
  {
    const MutexLock lock(mu_);
    const Entry& entry = lease->entry();
    if (!wish && !entry.wanted) return Fail(ErrorCode::kConflict, "model '{}' is not loaded", name);
    if (!wish && entry.overridden) {
      return Fail(ErrorCode::kConflict, "model '{}' is served from what came with a load call, not from the disk",
                  name);
    }
    served = entry.served;
    lease->entry().hurry = hurry;
  }
  if (stopping_) hurry->Cancel();  // Whoever set it may have looked for tokens before ours was there.
  LoadOutcome outcome;
  try {
    outcome = Build(name, options, served, *hurry);
  } catch (const std::exception& e) {
    outcome.error = Error{ErrorCode::kInternal, Quotable(e.what())};
    outcome.folder = std::unexpected(*outcome.error);
  }
  return Apply(*lease, std::move(outcome));
}

ModelRepository::LoadOutcome ModelRepository::Build(const std::string& name, const LoadOptions& options,
                                                    const std::map<std::int64_t, LoadedVersion>& served,
                                                    CancelToken& hurry) const {
  LoadOutcome outcome;
  std::shared_ptr<TemporaryFolder> keep;
  outcome.overridden = options.config_json.has_value();
  if (options.files.empty()) {
    outcome.folder = FindModelFolder(options_.roots, name);
  } else {
    auto written = WriteOverrideFiles(options.files, TemporaryParent(), options_.max_override_bytes);
    if (written) keep = *written;
    outcome.folder = written ? ReadLooseFolder(name, keep->path()) : std::unexpected(written.error());
  }
  if (!outcome.folder) {
    outcome.error = outcome.folder.error();
    return outcome;
  }
  const auto plan = loader_.Plan(*outcome.folder, options.config_json, keep);
  if (!plan) {
    outcome.error = plan.error();
    return outcome;
  }
  for (const std::int64_t version : plan->versions) {
    if (stopping_) {
      outcome.failed.emplace(version, Error{ErrorCode::kUnavailable, "the server is shutting down"});
      continue;
    }
    const auto previous = served.find(version);
    auto loaded = loader_.Load(*plan, version, previous == served.end() ? nullptr : &previous->second, hurry);
    if (loaded) {
      outcome.loaded.emplace(version, std::move(*loaded));
    } else {
      outcome.failed.emplace(version, std::move(loaded.error()));
    }
  }
  return outcome;
}

Status ModelRepository::Apply(Lease& lease, LoadOutcome outcome) {
  std::optional<Error> error = outcome.error;
  const std::string own_name = Format("model '{}': ", lease.name());
  for (auto& [version, why] : outcome.failed) {
    // The runtime names the model, and so does every message that this becomes a part of.
    if (why.message.starts_with(own_name)) why.message.erase(0, own_name.size());
    if (!error) error = Error{why.code, ""};
    error->message += Format("{}version {}: {}", error->message.empty() ? "" : "; ", version, why.message);
  }
  std::map<std::int64_t, LoadedVersion> retired;  // Let go of after the lock.
  std::vector<std::int64_t> ready;
  bool still_served = false;
  {
    const MutexLock lock(mu_);
    Entry& entry = lease.entry();
    retired = entry.served;
    if (!error) entry.served.clear();
    if (!error) entry.missing.clear();
    for (auto& [version, loaded] : outcome.loaded) {
      if (!retired.contains(version) || retired.at(version).servable != loaded.servable) ready.push_back(version);
      entry.missing.erase(version);
      entry.draining.erase(version);
      entry.served.insert_or_assign(version, std::move(loaded));
    }
    for (const auto& [version, why] : outcome.failed) {
      if (!entry.served.contains(version)) entry.missing[version] = why.message;
    }
    entry.reason = error ? error->message : "";
    if (!outcome.overridden) entry.attempted = outcome.folder;
    still_served = !entry.served.empty();
    if (!outcome.loaded.empty()) {
      entry.wanted = true;
      entry.unloaded = false;
      entry.overridden = outcome.overridden;
    }
    // A stranger's load calls must not leave an entry behind for every name they make up.
    const bool on_disk = outcome.folder.has_value() && !outcome.overridden;
    if (lease.is_new() && !still_served && !on_disk) lease.Forget();
    Publish();
  }
  for (const std::int64_t version : ready) {
    Log(LogLevel::kInfo, Format("model '{}' version {} is ready", lease.name(), version));
  }
  if (!error) return {};
  Log(LogLevel::kError, Format("model '{}' failed to load: {}{}", Quotable(lease.name()), error->message,
                               still_served ? "; what was served before still is" : ""));
  return Fail(error->code, "model '{}' failed to load: {}", Quotable(lease.name()), error->message);
}

Status ModelRepository::UnloadModel(const std::string& name, bool forget) {
  const auto lease = Lease::Take(*this, name, ModelState::kUnloading, /*create=*/false);
  if (!lease) return Fail(ErrorCode::kNotFound, "model '{}' is not known to this server", Quotable(name));
  std::map<std::int64_t, LoadedVersion> retired;  // Let go of after the lock.
  // What only came with a load call leaves nothing behind.
  const auto on_disk = FindModelFolder(options_.roots, name);
  const bool gone = !on_disk && on_disk.error().code == ErrorCode::kNotFound;
  {
    const MutexLock lock(mu_);
    Entry& entry = lease->entry();
    if (forget && entry.overridden) return {};
    if (forget || (gone && entry.overridden)) lease->Forget();
    retired = std::move(entry.served);
    entry.served.clear();
    for (const auto& [version, loaded] : retired) {
      entry.missing[version] = "unloaded";
      entry.draining[version] = loaded.servable;
    }
    if (entry.wanted || !retired.empty()) entry.reason = "unloaded";
    entry.wanted = false;
    entry.unloaded = true;
    entry.overridden = false;
    entry.attempted.reset();
    Publish();
  }
  if (!retired.empty()) Log(LogLevel::kInfo, Format("model '{}' is unloaded", name));
  return {};
}

Status ModelRepository::CheckExplicit() const {
  if (options_.mode == ControlMode::kExplicit) return {};
  return Fail(
      ErrorCode::kUnavailable,
      "explicit load and unload of models is not allowed in model control mode '{}'; the server must be started "
      "with --model-control-mode explicit",
      options_.mode == ControlMode::kPoll ? "poll" : "none");
}

Status ModelRepository::Load(const std::string& name, LoadOptions options) {
  TANDEM_TRY(CheckExplicit());
  TANDEM_TRY(CheckModelName(name));
  if (!options.files.empty() && !options.config_json) {
    return Invalid("parameter '{}' needs parameter 'config' beside it", Quotable(options.files.begin()->first));
  }
  return LoadModel(name, options, LoadKind::kWish);
}

Status ModelRepository::Reload(const std::string& name) {
  return LoadModel(name, {}, LoadKind::kRefresh);
}

Result<Succession> ModelRepository::TrySuccessor(const std::string& name, const std::filesystem::path& file) const {
  TANDEM_ASSIGN(const LoadedVersion served, FindVersion(name, ""));
  TANDEM_ASSIGN(ModelSignature successor, loader_.ReadSignature(name, *served.source->given, file));
  return Succession{.served = *served.graph, .successor = std::move(successor)};
}

Result<ProfiledVersion> ModelRepository::OpenProfiled(std::string_view name, std::string_view version,
                                                      const ModelLoader::ProfileCheck& check) const {
  TANDEM_ASSIGN(const LoadedVersion loaded, FindVersion(name, version));
  return loader_.OpenProfiled(loaded, TemporaryParent(), check);
}

Status ModelRepository::Unload(const std::string& name) {
  TANDEM_TRY(CheckExplicit());
  TANDEM_TRY(CheckModelName(name));
  HurryLoading(name);
  return UnloadModel(name, /*forget=*/false);
}

Status ModelRepository::Rescan(bool retry_failed) {
  const auto scan = ScanRepositories(options_.roots);
  if (!scan) return std::unexpected(scan.error());
  std::vector<std::string> gone;
  {
    const MutexLock lock(mu_);
    for (const auto& [name, entry] : entries_) {
      const bool asked_for =
          options_.mode == ControlMode::kExplicit && std::ranges::contains(options_.load_models, name);
      if (scan->models.contains(name) || entry.overridden || (asked_for && entry.served.empty())) continue;
      gone.push_back(name);
    }
  }
  for (const std::string& name : gone) {
    if (const Status unloaded = UnloadModel(name, /*forget=*/true); !unloaded) {
      Log(LogLevel::kWarning, unloaded.error().message);
    }
  }
  // What failed is in the log and in the index.
  static_cast<void>(LoadAll(NoteScan(*scan, retry_failed)));
  return {};
}

void ModelRepository::Post(std::move_only_function<Status()> operation, Done done) {
  const auto stopped = [] { return Status(Fail(ErrorCode::kUnavailable, "the server is shutting down")); };
  // Shared because a task that is not taken must still leave `done` here.
  const auto answer = std::make_shared<Done>(std::move(done));
  Worker::Task task = [this, operation = std::move(operation), answer, stopped]() mutable {
    Status result;
    try {
      result = stopping_ ? stopped() : operation();
    } catch (const std::exception& e) {
      result = Fail(ErrorCode::kInternal, "the operation on the model failed: {}", Quotable(e.what()));
    }
    (*answer)(std::move(result));
  };
  if (!worker_->Post(std::move(task))) (*answer)(stopped());
}

void ModelRepository::LoadAsync(std::string name, LoadOptions options, Done done) {
  Post(
      [this, name = std::move(name), options = std::move(options)]() mutable { return Load(name, std::move(options)); },
      std::move(done));
}

void ModelRepository::UnloadAsync(std::string name, Done done) {
  if (CheckExplicit()) HurryLoading(name);  // Now: the load may be what the worker is busy with.
  Post([this, name = std::move(name)] { return Unload(name); }, std::move(done));
}

void ModelRepository::RescanAsync(Done done) {
  Post([this] { return Rescan(/*retry_failed=*/true); }, std::move(done));
}

void ModelRepository::PollLoop() {
  NameThread("repository-poll");
  while (true) {
    {
      const MutexLock lock(mu_);
      if (stopping_) return;
      // A wake-up before the time has passed is the end, or nothing.
      if (poll_wake_.WaitFor(mu_, options_.poll_interval)) continue;
    }
    try {
      if (const Status scanned = Rescan(); !scanned) Log(LogLevel::kError, scanned.error().message);
    } catch (const std::exception& e) {
      Log(LogLevel::kError, Format("looking for changed models failed: {}", Quotable(e.what())));
    }
  }
}

}  // namespace tandem::repository
