#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "colocation/model_bits.h"
#include "server/repository/session_factory.h"
#include "server/repository/version_memory.h"

namespace tandem::repository {

class RunArchive;

enum class ControlMode {
  kNone,      // Everything is loaded at the start; Rescan() picks up changes.
  kPoll,      // And the repositories are looked at every poll_interval.
  kExplicit,  // Only load_models, and what Load() and Unload() say.
};

enum class LogLevel { kInfo, kWarning, kError };

struct RepositoryOptions {
  std::vector<std::filesystem::path> roots;
  ControlMode mode = ControlMode::kNone;
  std::vector<std::string> load_models;  // kExplicit only; "*" stands for all.
  std::chrono::milliseconds poll_interval{15'000};
  std::vector<ProviderChoice> default_providers;  // For models whose configuration names none.
  bool default_warmup = true;                     // Runs over zeros where the configuration has no model_warmup.
  // A version whose run over zeros takes longer is served cold; one whose model_warmup does fails to load.
  std::chrono::milliseconds default_warmup_limit{5'000};
  std::chrono::milliseconds warmup_limit{300'000};
  // That runs on the CPU use. Above 1: beside each such session there is a second one whose runs use one thread
  // (colocation/run_width.h).
  int threads = 1;
  int loading_threads = 2;                 // At the start and in Rescan().
  std::filesystem::path temporary_folder;  // For files that come with a load call; empty: the system's.
  // Where weights that sessions share are written to for a moment: best on a disk, as some stay there, without a name,
  // as long as the model is loaded. Empty: each session has weights of its own.
  std::filesystem::path weights_folder;
  std::uint64_t max_override_bytes = std::uint64_t{2} << 30;
  // What is known of runs from before; both borrowed, and outlive the repository. No archive: nothing is.
  RunArchive* runs = nullptr;
  const Clock* clock = &RealClock::Instance();
  // By which requests for models are told apart; borrowed, and outlives the repository. Null: nobody does.
  ModelBits* bits = nullptr;
  MemoryCounter count_memory;  // Unset: nobody counts.
  // Called from any thread, several at once; must not call back into the repository. Unset: silence.
  std::function<void(LogLevel, const std::string&)> log;
};

}  // namespace tandem::repository
