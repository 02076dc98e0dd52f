#include "colocation/batch_policy.h"

#include <algorithm>

#include "colocation/work_forecast.h"

namespace tandem {
namespace {

// What a timer may be late, and the way from a run's end to the answer.
constexpr std::chrono::milliseconds kMargin{1};

struct Fit {
  std::size_t requests = 0;
  std::int64_t elements = 0;
};

// As many of the first requests as stay within `limit` elements.
Fit FitWithin(std::span<const std::int64_t> sizes, std::int64_t limit) {
  Fit fit;
  for (const std::int64_t size : sizes) {
    if (fit.elements + size > limit) break;
    fit.elements += size;
    ++fit.requests;
  }
  return fit;
}

// The most requests that add up to exactly one of the preferred sizes; 0 when none does.
std::size_t LargestPreferred(const BatchSnapshot& snapshot) {
  std::size_t best = 0;
  for (const std::int64_t preferred : snapshot.settings.preferred_sizes) {
    const Fit fit = FitWithin(snapshot.sizes, preferred);
    if (fit.elements == preferred) best = std::max(best, fit.requests);
  }
  return best;
}

// As many of the first `most` as are in time when they are run together; at least 1. What would be late even alone is
// no reason to run the others apart.
std::size_t InTime(const BatchSnapshot& snapshot, std::size_t most) {
  if (snapshot.left.empty() || snapshot.runs.size() < most) return most;
  std::size_t in_time = 1;
  std::chrono::nanoseconds shortest = std::chrono::nanoseconds::max();
  for (std::size_t i = 0; i < most; ++i) {
    const std::chrono::nanoseconds left = snapshot.left[i] - AnswerMargin(snapshot.left[i]);
    if (left >= snapshot.runs[0]) shortest = std::min(shortest, left);
    if (snapshot.runs[i] <= shortest) in_time = i + 1;
  }
  return in_time;
}

// How long the run may still be put off; not positive: not at all.
std::chrono::nanoseconds MayWait(const BatchSnapshot& snapshot) {
  const std::chrono::nanoseconds delay = snapshot.settings.max_queue_delay - snapshot.oldest_wait;
  if (snapshot.left.empty()) return delay;
  const std::chrono::nanoseconds left = std::ranges::min(snapshot.left) - kMargin;
  // Twice: a batch that comes late breaks an SLO, one that goes early only costs throughput.
  if (!snapshot.runs.empty()) return std::min(delay, left - 2 * snapshot.runs.back());
  return left > delay ? delay : std::chrono::nanoseconds(0);
}

}  // namespace

BatchDecision ChooseBatch(const BatchSnapshot& snapshot) {
  const BatchSettings& settings = snapshot.settings;
  if (!settings.dynamic || settings.max_batch_size <= 1) return {.take = 1};

  const Fit full = FitWithin(snapshot.sizes, settings.max_batch_size);
  // A request larger than a batch never gets here: the validator refuses it.
  const std::size_t in_time = InTime(snapshot, std::max<std::size_t>(full.requests, 1));
  if (in_time < full.requests) return {.take = in_time};
  const bool cannot_grow = full.elements == settings.max_batch_size || full.requests < snapshot.sizes.size();
  if (const std::size_t preferred = LargestPreferred(snapshot); preferred > 0) return {.take = preferred};
  const std::chrono::nanoseconds wait = MayWait(snapshot);
  if (cannot_grow || wait <= std::chrono::nanoseconds(0)) return {.take = in_time};
  return {.take = 0, .wait = wait};
}

}  // namespace tandem
