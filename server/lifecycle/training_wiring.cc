#include "server/lifecycle/training_wiring.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "server/jobs/memory_group.h"
#include "server/log/log.h"
#include "server/trainer/run_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// As the XDG base directories have it; empty when the user has no home.
fs::path UserState() {
  if (const char* const state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "tandem";
  }
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".local" / "state" / "tandem";
  }
  return {};
}

jobs::JobOptions Settings(const ServeOptions& o, const Colocation& colocation) {
  jobs::JobOptions settings;
  std::error_code ec;
  settings.state = StateFolder(o);
  if (!o.data_root.empty()) settings.data_root = fs::absolute(o.data_root, ec);
  settings.repositories.assign(o.model_repository.begin(), o.model_repository.end());
  settings.trainer = TrainerProgram(o);
  settings.arbiter = colocation.arbiter.get();
  settings.turns = colocation.turns.get();
  settings.runs = colocation.runs.get();
  settings.seats = colocation.seats.get();
  if (colocation.sign != nullptr) settings.sign = colocation.sign->fd();
  settings.rank = colocation.policy->trainer_class();
  settings.cores = colocation.training_cores;
  settings.threads = colocation.training_threads;
  settings.fixed_threads = colocation.fixed_threads;
  // Threads of a trainer whose turn is over are in the way of the next one while they poll.
  settings.thrifty = colocation.paced || o.max_training_jobs > 1;
  settings.running = o.max_training_jobs;
  settings.attempts = o.training_attempts;
  settings.hang_limit = std::chrono::milliseconds(std::llround(o.training_hang_secs * 1000));
  return settings;
}

// Their memory is bounded by other means then.
fs::path WithoutGroups(const Error& why) {
  LogWarning("trainers get no control groups", {{"reason", why.message}});
  return {};
}

// Where trainers get control groups: as told, or where nobody minds; empty for nowhere.
Result<fs::path> MemoryGroups(const std::string& option) {
  if (option == "none") return fs::path();
  if (option != "auto") {
    const Status usable = jobs::MemoryGroup::Check(option);
    if (usable) return fs::path(option);
    if (usable.error().code != ErrorCode::kUnsupported) return std::unexpected(usable.error());
    return WithoutGroups(usable.error());
  }
  std::ifstream in("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(in), {}};
  const auto delegated = jobs::DelegatedGroup(membership, "/sys/fs/cgroup");
  if (!delegated) return fs::path();
  const Status usable = jobs::MemoryGroup::Check(*delegated);
  return usable ? *delegated : WithoutGroups(usable.error());
}

}  // namespace

fs::path StateFolder(const ServeOptions& options) {
  std::error_code ec;
  return options.state.empty() ? UserState() : fs::absolute(options.state, ec);
}

std::optional<jobs::StateLock> KeepRuns(const ServeOptions& options, bool training, repository::RunArchive& runs) {
  std::optional<jobs::StateLock> held;
  if (!training) {
    if (options.allow_training || options.state.empty()) return held;
    auto lock = jobs::StateLock::Acquire(StateFolder(options));
    if (!lock) {
      LogWarning("what is learnt of runs is not kept", {{"reason", lock.error().message}});
      return held;
    }
    held.emplace(*std::move(lock));
  }
  const Status opened = runs.Open(StateFolder(options) / "learnt-runs");
  if (!opened) LogWarning(opened.error().message);
  return held;
}

void SaveRunsNow(repository::RunArchive& runs) {
  const Status saved = runs.Save();
  if (!saved) LogWarning("what was learnt of runs is not kept", {{"reason", saved.error().message}});
}

fs::path TrainerProgram(const ServeOptions& options) {
  std::error_code ec;
  if (!options.trainer.empty()) return fs::absolute(options.trainer, ec);
  return fs::read_symlink("/proc/self/exe", ec).parent_path() / kTrainerProgram;
}

Result<std::unique_ptr<jobs::JobService>> StartTraining(const ServeOptions& options, const Colocation& colocation,
                                                        MemoryAccount& memory, repository::ModelRepository& repository,
                                                        const Clock& clock, std::string& why_off) {
  if (!options.allow_training) {
    why_off = "training is off: the server was started with --allow-training false";
    return nullptr;
  }
  jobs::JobOptions settings = Settings(options, colocation);
  auto groups = MemoryGroups(options.training_cgroup);
  if (!groups) return Fail(groups.error().code, "--training-cgroup: {}", groups.error().message);
  settings.memory_groups = *std::move(groups);
  settings.memory = &memory;
  auto service = settings.state.empty()
                     ? Fail(ErrorCode::kUnavailable, "the user has no home directory; name a folder with --state")
                     : jobs::JobService::Start(std::move(settings), repository, clock);
  if (service || !options.state.empty()) return service;
  why_off = "training is off: " + service.error().message;
  LogWarning(why_off);
  return nullptr;
}

}  // namespace tandem
