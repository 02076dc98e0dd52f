#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem {

// What a trainer is started with: the job, and what the server has decided about it.
struct TrainerRun {
  TrainingJob job;
  std::filesystem::path model;      // The ONNX file that is trained from.
  std::filesystem::path folder;     // Of the job.
  std::filesystem::path data_root;  // Empty: it can read no data.
  int threads = 1;
  std::int64_t number = 0;             // Of the job; the model that it writes says so.
  std::optional<std::uint64_t> limit;  // Bytes that the trainer is held to in place of the job's own memory.
  bool measure_only = false;           // Evaluates the model as it is, tells it as the baseline, and writes nothing.
  bool estimate_only = false;          // Tells what the job would take of memory, and does nothing else.

  friend bool operator==(const TrainerRun&, const TrainerRun&) = default;
};

// As JSON, in a file of the job's folder.
[[nodiscard]] Status WriteRunFile(const TrainerRun& run, const std::filesystem::path& file);
[[nodiscard]] Result<TrainerRun> ReadRunFile(const std::filesystem::path& file);

// How a trainer is called; the descriptors are those it inherits.
inline constexpr const char* kTrainerProgram = "tandem-trainer";
inline constexpr int kTrainerEventsFd = 3;
inline constexpr int kTrainerBoardFd = 4;
inline constexpr int kTrainerBellFd = 5;  // /dev/null where nobody listens.
inline constexpr int kTrainerLaneFd = 6;  // /dev/null where it has no lane.
inline constexpr int kTrainerSignFd = 7;  // Closed where trainers are shown nothing.

}  // namespace tandem
