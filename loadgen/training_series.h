#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "loadgen/server_metrics.h"

namespace tandem::loadgen {

// How the training jobs of a server went on during a run, from readings of its counters. When there are too many
// readings, every other one goes: memory is bounded however long the run is. Used by one thread at a time.
class TrainingSeries {
 public:
  static constexpr std::size_t kMaxReadings = 1024;
  static constexpr std::size_t kMaxJobs = 64;  // The first ones seen; what others do is not kept.

  // Times never fall.
  void Add(MonotonicTime at, const std::map<std::string, TrainingCounters>& jobs);

  // One job between two readings. A counter that went back (the server was started again) counts from 0.
  struct Span {
    double iterations_per_s = 0;
    double held_share = 0;  // Of the time; 1 is all of it.
  };
  struct Job {
    std::string job;
    double iterations = 0;                 // In all of the time.
    std::map<std::string, double> held_s;  // The same, by reason.
    std::vector<Span> spans;               // As many as times() has.
  };

  [[nodiscard]] bool empty() const { return names_.empty() || readings_.size() < 2; }
  // Where each span ends.
  [[nodiscard]] std::vector<MonotonicTime> times() const;
  [[nodiscard]] std::vector<Job> Jobs() const;
  // Share of the last span that jobs were held, on average; nothing without jobs.
  [[nodiscard]] std::optional<double> HeldLately() const;

 private:
  struct Reading {
    MonotonicTime at;
    std::vector<TrainingCounters> jobs;  // As names_; shorter where a job came later.
  };
  [[nodiscard]] const TrainingCounters& Counters(std::size_t reading, std::size_t job) const;
  [[nodiscard]] Span Between(std::size_t reading, std::size_t job) const;

  std::vector<std::string> names_;
  std::vector<Reading> readings_;
  std::size_t keep_every_ = 1;
  std::size_t seen_ = 0;
};

// One JSON object: {"at_s": […], "jobs": […]}, times counted from `start`; "null" when there was no job.
[[nodiscard]] std::string TrainingJson(const TrainingSeries& series, MonotonicTime start);

}  // namespace tandem::loadgen
