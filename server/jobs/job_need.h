#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem::jobs {

// What a job is promised of the machine's memory, in bytes.
struct JobNeed {
  std::uint64_t persistent = 0;
  std::uint64_t ephemeral = 0;
  bool bounded = false;  // By its own /memory, which its trainer is held to: it takes no more, and is promised no less.

  [[nodiscard]] std::uint64_t total() const { return persistent + ephemeral; }
  friend bool operator==(const JobNeed&, const JobNeed&) = default;
};

// Tells what a job needs that trains from the file. Called on the jobs thread.
using NeedEstimator = std::function<Result<JobNeed>(const TrainingJob& job, const std::filesystem::path& model)>;

// What is known of a model without looking at its shapes.
struct ModelSize {
  std::uint64_t weight_bytes = 0;
  std::uint64_t nodes = 0;
  bool convolutions = false;
};

// A first guess, before anybody has seen the job run:
//   P  what a trainer takes for itself, and the weights so many times: once as they are, once for gradients, for each
//      state of the optimizer, and once more weights and states for the copy that a checkpoint is written from
//   E  for each example of a batch as much as all weights where they are moved over a picture (but 128 MiB at most),
//      else a layer as wide as a square matrix of all weights for every node; and 16 MiB for what libraries take
// E is of the right order of magnitude at best. What the job's own /memory says wins: then P and E come to just that.
[[nodiscard]] JobNeed GuessNeed(const TrainingJob& job, const ModelSize& model);
// The same for a file. Errors name it.
[[nodiscard]] Result<JobNeed> GuessNeedOf(const TrainingJob& job, const std::filesystem::path& model);

// The same of a job that is to fit into what is free: all of that until its trainer tells what it takes of it, but
// never less than P and a sixteenth of E, below which a step is not brought, by guess.
[[nodiscard]] JobNeed NeedWithin(const JobNeed& need, std::uint64_t free);

// What a trainer says that its job will take. It may say anything, so no more than a machine has ever had.
[[nodiscard]] JobNeed NeedAsTold(std::uint64_t persistent, std::uint64_t ephemeral);
// What is noted of a job that had a trainer before (JobRecord::memory): what that measured, else what it estimated.
// nullopt where nothing is.
[[nodiscard]] std::optional<JobNeed> NeedAsNoted(std::string_view memory);

// What a job turned out to need: whose trainer has held `peak` bytes at most so far. At once more when that is more
// than it was promised; less, with an eighth to spare, once it has seen whole steps (`settled`). One that is bounded
// keeps what it was promised.
[[nodiscard]] JobNeed CorrectNeed(const JobNeed& promised, std::uint64_t peak, bool settled);

}  // namespace tandem::jobs
