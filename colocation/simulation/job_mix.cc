#include "colocation/simulation/job_mix.h"

#include <algorithm>
#include <cmath>

namespace tandem::simulation {
namespace {

using std::chrono::nanoseconds;

// Of every job that is done.
template <typename Of>
std::vector<nanoseconds> Times(const std::vector<JobOutcome>& jobs, const Of& of) {
  std::vector<nanoseconds> times;
  for (const JobOutcome& job : jobs) {
    if (job.done) times.push_back((job.*of)());
  }
  return times;
}

nanoseconds Mean(const std::vector<nanoseconds>& times) {
  double sum = 0;
  for (const nanoseconds time : times) sum += static_cast<double>(time.count());
  return nanoseconds(times.empty() ? 0 : std::llround(sum / static_cast<double>(times.size())));
}

}  // namespace

nanoseconds JobMixResult::makespan() const {
  nanoseconds first = nanoseconds::max();
  nanoseconds last{0};
  for (const JobOutcome& job : jobs) {
    if (!job.done) continue;
    first = std::min(first, job.arrival);
    last = std::max(last, job.ended);
  }
  return first > last ? nanoseconds(0) : last - first;
}

nanoseconds JobMixResult::mean_queueing() const {
  return Mean(Times(jobs, &JobOutcome::queueing));
}

nanoseconds JobMixResult::mean_completion() const {
  return Mean(Times(jobs, &JobOutcome::completion));
}

nanoseconds JobMixResult::p95_completion() const {
  std::vector<nanoseconds> times = Times(jobs, &JobOutcome::completion);
  if (times.empty()) return nanoseconds(0);
  std::ranges::sort(times);
  return times[static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(times.size()))) - 1];
}

}  // namespace tandem::simulation
