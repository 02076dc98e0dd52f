#include "loadgen/training_series.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

// By how much a counter rose; one that fell began anew.
double Rise(double from, double to) {
  return to >= from ? to - from : to;
}

double SecondsBetween(MonotonicTime from, MonotonicTime to) {
  return std::chrono::duration<double>(to - from).count();
}

template <typename Items, typename Text>
std::string Joined(const Items& items, Text text) {
  std::string all = "[";
  for (const auto& item : items) {
    if (all.size() > 1) all += ',';
    all += text(item);
  }
  return all + "]";
}

std::string JobJson(const TrainingSeries::Job& job) {
  std::string held;
  for (const auto& [reason, seconds] : job.held_s) {
    held += Format("{}{}:{}", held.empty() ? "" : ",", JsonString(reason), seconds);
  }
  using Span = TrainingSeries::Span;
  return Format(R"({{"job":{},"iterations":{},"held_s":{{{}}},"iterations_per_s":{},"held_share":{}}})",
                JsonString(job.job), job.iterations, held,
                Joined(job.spans, [](const Span& span) { return Format("{}", span.iterations_per_s); }),
                Joined(job.spans, [](const Span& span) { return Format("{}", span.held_share); }));
}

}  // namespace

void TrainingSeries::Add(MonotonicTime at, const std::map<std::string, TrainingCounters>& jobs) {
  if (seen_++ % keep_every_ != 0) return;
  if (readings_.size() == kMaxReadings) {
    for (std::size_t i = 0; i < readings_.size() / 2; ++i) readings_[i] = std::move(readings_[2 * i]);
    readings_.resize(readings_.size() / 2);
    keep_every_ *= 2;
  }
  for (const auto& [name, counters] : jobs) {
    if (names_.size() < kMaxJobs && !std::ranges::contains(names_, name)) names_.push_back(name);
  }
  Reading reading{.at = at, .jobs = {}};
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto found = jobs.find(names_[i]);
    // A job that has gone stands where it was.
    const bool gone = found == jobs.end() && !readings_.empty();
    reading.jobs.push_back(gone ? Counters(readings_.size() - 1, i)
                                : (found == jobs.end() ? TrainingCounters{} : found->second));
  }
  readings_.push_back(std::move(reading));
}

const TrainingCounters& TrainingSeries::Counters(std::size_t reading, std::size_t job) const {
  static const TrainingCounters kNone;
  const std::vector<TrainingCounters>& jobs = readings_[reading].jobs;
  return job < jobs.size() ? jobs[job] : kNone;
}

TrainingSeries::Span TrainingSeries::Between(std::size_t reading, std::size_t job) const {
  const double seconds = SecondsBetween(readings_[reading - 1].at, readings_[reading].at);
  const TrainingCounters& from = Counters(reading - 1, job);
  const TrainingCounters& to = Counters(reading, job);
  if (seconds <= 0) return {};
  return {.iterations_per_s = Rise(from.iterations, to.iterations) / seconds,
          .held_share = std::min(Rise(from.held(), to.held()) / seconds, 1.0)};
}

std::vector<MonotonicTime> TrainingSeries::times() const {
  std::vector<MonotonicTime> times;
  for (std::size_t i = 1; i < readings_.size(); ++i) times.push_back(readings_[i].at);
  return times;
}

std::vector<TrainingSeries::Job> TrainingSeries::Jobs() const {
  std::vector<Job> jobs;
  for (std::size_t j = 0; j < names_.size(); ++j) {
    Job& job = jobs.emplace_back();
    job.job = names_[j];
    for (std::size_t i = 1; i < readings_.size(); ++i) {
      job.spans.push_back(Between(i, j));
      const TrainingCounters& from = Counters(i - 1, j);
      const TrainingCounters& to = Counters(i, j);
      job.iterations += Rise(from.iterations, to.iterations);
      for (const auto& [reason, held] : to.held_s) {
        const auto before = from.held_s.find(reason);
        job.held_s[reason] += Rise(before == from.held_s.end() ? 0 : before->second, held);
      }
    }
  }
  return jobs;
}

std::optional<double> TrainingSeries::HeldLately() const {
  if (empty()) return std::nullopt;
  double held = 0;
  for (std::size_t j = 0; j < names_.size(); ++j) held += Between(readings_.size() - 1, j).held_share;
  return held / static_cast<double>(names_.size());
}

std::string TrainingJson(const TrainingSeries& series, MonotonicTime start) {
  if (series.empty()) return "null";
  return Format(R"({{"at_s":{},"jobs":{}}})",
                Joined(series.times(), [&](MonotonicTime at) { return Format("{:.3f}", SecondsBetween(start, at)); }),
                Joined(series.Jobs(), JobJson));
}

}  // namespace tandem::loadgen
