#include "server/repository/model_repository.h"

#include <algorithm>
#include <utility>

#include "api/base/format.h"
#include "api/wire/proto/model_config.pb.h"
#include "server/repository/model_name.h"
#include "server/repository/model_settings.h"
#include "server/repository/run_archive.h"

namespace tandem::repository {

std::string_view ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kReady: return "READY";
    case ModelState::kUnavailable: return "UNAVAILABLE";
    case ModelState::kLoading: return "LOADING";
    case ModelState::kUnloading: return "UNLOADING";
  }
  return "UNAVAILABLE";
}

ModelRepository::ModelRepository(RepositoryOptions options, SessionFactory& factory)
    : options_(std::move(options)),
      worker_(std::make_shared<Worker>()),
      loader_(options_, factory, worker_),
      serving_(std::make_shared<const Serving>()) {}

ModelRepository::~ModelRepository() {
  StopLoading();
  if (poller_.joinable()) poller_.join();
  worker_->Stop();
}

void ModelRepository::StopLoading() {
  stopping_ = true;
  {
    const MutexLock lock(mu_);
    poll_wake_.NotifyAll();
  }
  HurryLoading(std::nullopt);
}

void ModelRepository::HurryLoading(std::optional<std::string_view> name) {
  std::vector<std::shared_ptr<CancelToken>> tokens;  // Cancelled after the lock: what hears of it is not ours.
  {
    const MutexLock lock(mu_);
    for (const auto& [each, entry] : entries_) {
      if (entry.hurry && (!name || *name == each)) tokens.push_back(entry.hurry);
    }
  }
  for (const auto& token : tokens) token->Cancel();
}

std::vector<StartupFailure> ModelRepository::StartupFailures() const {
  const MutexLock lock(mu_);
  return startup_failures_;
}

Error ModelRepository::WhyNotServed(std::string_view name) const {
  const MutexLock lock(mu_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return {ErrorCode::kNotFound, Format("model '{}' is not known to this server", Quotable(name))};
  }
  const Entry& entry = found->second;
  if (entry.activity == ModelState::kLoading) {
    return {ErrorCode::kUnavailable, Format("model '{}' is still loading", name)};
  }
  if (!entry.wanted) return {ErrorCode::kNotFound, Format("model '{}' is not loaded", name)};
  return {ErrorCode::kUnavailable, Format("model '{}' is not ready: {}", name, entry.reason)};
}

Result<LoadedVersion> ModelRepository::FindVersion(std::string_view name, std::string_view version) const {
  std::optional<std::int64_t> number;
  if (!version.empty()) {
    TANDEM_ASSIGN(number, ParseRequestedVersion(version));
  }
  const std::shared_ptr<const Serving> serving = serving_.Load();
  const auto model = serving->find(name);
  if (model == serving->end()) return std::unexpected(WhyNotServed(name));
  const std::vector<LoadedVersion>& versions = model->second;
  if (version.empty()) return versions.back();
  if (number) {
    const auto found =
        std::ranges::find(versions, *number, [](const LoadedVersion& v) { return v.servable->version(); });
    if (found != versions.end()) return *found;
    const MutexLock lock(mu_);
    const auto entry = entries_.find(name);
    if (entry != entries_.end() && entry->second.missing.contains(*number)) {
      return Fail(ErrorCode::kUnavailable, "model '{}' version {} is not ready: {}", name, *number,
                  entry->second.missing.at(*number));
    }
  }
  std::string served;
  for (const LoadedVersion& each : versions) served += (served.empty() ? "" : ", ") + each.servable->version_text();
  return Fail(ErrorCode::kNotFound, "model '{}' has no version {}; it serves {}", name, Quotable(version), served);
}

Result<std::shared_ptr<Servable>> ModelRepository::Find(std::string_view name, std::string_view version) const {
  // The usual call names no version. It takes one reference on the snapshot and one on the servable, nothing else.
  if (version.empty()) {
    const std::shared_ptr<const Serving> serving = serving_.Load();
    if (const auto model = serving->find(name); model != serving->end()) return model->second.back().servable;
  }
  TANDEM_ASSIGN(const LoadedVersion found, FindVersion(name, version));
  return found.servable;
}

Result<std::shared_ptr<const inference::ModelConfig>> ModelRepository::Config(std::string_view name,
                                                                              std::string_view version) const {
  TANDEM_ASSIGN(const LoadedVersion found, FindVersion(name, version));
  return found.config;
}

Result<std::vector<std::string>> ModelRepository::Versions(std::string_view name) const {
  const std::shared_ptr<const Serving> serving = serving_.Load();
  const auto model = serving->find(name);
  if (model == serving->end()) return std::unexpected(WhyNotServed(name));
  std::vector<std::string> versions;
  for (const LoadedVersion& each : model->second) versions.push_back(each.servable->version_text());
  return versions;
}

bool ModelRepository::IsReady(std::string_view name, std::string_view version) const {
  return Find(name, version).has_value();
}

Status ModelRepository::CheckReady(std::string_view name, std::string_view version) const {
  const auto found = Find(name, version);
  if (found) return {};
  if (found.error().code != ErrorCode::kNotFound || serving_.Load()->contains(name)) {
    return std::unexpected(found.error());
  }
  const MutexLock lock(mu_);
  const bool known = entries_.contains(name);
  return Fail(known ? ErrorCode::kUnavailable : ErrorCode::kNotFound, "{}", found.error().message);
}

bool ModelRepository::AllReady() const {
  if (!started_) return false;
  const MutexLock lock(mu_);
  return std::ranges::all_of(entries_, [](const auto& named) {
    const Entry& entry = named.second;
    return !entry.wanted || !entry.served.empty();
  });
}

std::vector<IndexEntry> ModelRepository::Index(bool ready_only) const {
  std::vector<IndexEntry> index;
  const MutexLock lock(mu_);
  for (const auto& [name, entry] : entries_) {
    const std::string failure = entry.reason.empty() ? "" : "the last reload failed: " + entry.reason;
    for (const auto& [version, loaded] : entry.served) {
      index.push_back({name, std::to_string(version), ModelState::kReady, failure, OriginOf(*loaded.config)});
    }
    if (ready_only) continue;
    const bool loading = entry.activity == ModelState::kLoading;
    for (const auto& [version, reason] : entry.missing) {
      if (entry.served.contains(version)) continue;
      const auto draining = entry.draining.find(version);
      const bool in_flight = draining != entry.draining.end() && !draining->second.expired();
      const ModelState resting = in_flight ? ModelState::kUnloading : ModelState::kUnavailable;
      index.push_back({name, std::to_string(version), loading ? ModelState::kLoading : resting, reason, {}});
    }
    if (entry.served.empty() && entry.missing.empty()) {
      index.push_back({name,
                       "",
                       loading ? ModelState::kLoading : ModelState::kUnavailable,
                       entry.reason.empty() && !loading ? "not loaded" : entry.reason,
                       {}});
    }
  }
  return index;
}

std::vector<std::shared_ptr<Servable>> ModelRepository::Snapshot() const {
  const std::shared_ptr<const Serving> serving = serving_.Load();
  std::vector<std::shared_ptr<Servable>> servables;
  for (const auto& [name, versions] : *serving) {
    for (const LoadedVersion& version : versions) servables.push_back(version.servable);
  }
  std::ranges::sort(servables, {}, [](const auto& s) { return std::pair(std::string_view(s->name()), s->version()); });
  return servables;
}

void ModelRepository::SaveRunsAsync() {
  if (options_.runs == nullptr) return;
  // Nobody waits for it: when the worker has stopped there is nothing to do.
  static_cast<void>(worker_->Post([this] {
    const Status saved = options_.runs->Save();
    std::string failure = saved ? "" : "what was learnt of runs is not kept: " + saved.error().message;
    if (!failure.empty() && failure != save_failure_) Log(LogLevel::kWarning, failure);
    save_failure_ = std::move(failure);
  }));
}

void ModelRepository::Publish() {
  auto serving = std::make_shared<Serving>();
  for (const auto& [name, entry] : entries_) {
    if (entry.served.empty()) continue;
    std::vector<LoadedVersion>& versions = (*serving)[name];
    for (const auto& [version, loaded] : entry.served) versions.push_back(loaded);
  }
  serving_.Exchange(std::move(serving));
}

void ModelRepository::Log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

}  // namespace tandem::repository
