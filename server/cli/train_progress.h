#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <json/value.h>

#include "api/base/clock.h"
#include "api/base/result.h"

// How far a training job has come, in the words that people see. Nothing here asks the server or the clock.

namespace tandem::cli {

// What the server says about a job, as far as it is shown.
struct JobView {
  std::int64_t id = 0;
  std::string name;
  std::string owner;
  std::string state;
  std::string reason;
  std::string model;
  std::string model_version;
  std::string published_version;
  std::string publish;  // The rule: "never", "on_success", "if_better".
  std::int64_t attempts = 0;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;  // 0: not known yet.
  std::int64_t epoch = 0;
  std::optional<double> loss;
  std::string metric_name;  // Empty: there is no evaluation.
  std::optional<double> metric;
  std::optional<double> best;
  std::string created_at, started_at, ended_at, next_attempt_at;  // Empty: not yet, or none.

  [[nodiscard]] bool has_ended() const { return state == "succeeded" || state == "failed" || state == "cancelled"; }
};

// kInternal when this is no job.
[[nodiscard]] Result<JobView> ReadJobView(const Json::Value& json);

// Steps a second, from the steps seen lately. Used by one thread.
class StepRate {
 public:
  // Steps that fall, as when a job goes on from a checkpoint, and a job that does not run begin anew.
  void Add(MonotonicTime now, const JobView& job);
  // Nothing until there is enough to tell.
  [[nodiscard]] std::optional<double> PerSecond() const;

 private:
  static constexpr std::chrono::seconds kWindow{30};

  struct Sample {
    MonotonicTime time;
    std::int64_t step = 0;
  };
  std::deque<Sample> samples_;  // Within the window, and the newest before it.
};

// Text of many lines from a server or a trainer, without what would steer a terminal and without line ends at its end.
[[nodiscard]] std::string PrintableLines(std::string_view text);

// "45 s", "3 m 20 s", "2 h 5 m", "3 d 4 h".
[[nodiscard]] std::string DurationText(std::chrono::seconds duration);

// "job 7  running  [====>     ] 40/100  epoch 2  loss 0.1234  accuracy 0.9120  12.5 steps/s  ETA 5 s". With columns the
// line has at most that many, and a bar where there is room for one, if need be in the epoch's place; with 0, for a
// pipe, it has neither limit nor bar.
[[nodiscard]] std::string ProgressLine(const JobView& job, std::optional<double> steps_per_second, std::size_t columns);

// What is said of a job that has ended: how, what became of its result, and on lines of their own the reason, which may
// hold the end of its log.
[[nodiscard]] std::string EndLine(const JobView& job);

}  // namespace tandem::cli
