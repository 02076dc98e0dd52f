#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::loadgen {

// What a server says at /metrics about one model, all versions added up. Counters since the server's start, under the
// names that Triton gave them.
struct ServerCounters {
  double requests = 0;  // Answered.
  double queue_us = 0;
  double compute_us = 0;  // Input, inference and output.
  double total_us = 0;
};

// What our own server says about one training job since it began.
struct TrainingCounters {
  double iterations = 0;
  std::map<std::string, double> held_s;  // Seconds that it was held, by reason.

  [[nodiscard]] double held() const;  // All reasons together.
};

// A histogram as Prometheus has it: by the upper bound of a bucket, how many were counted up to there; the last bound
// may be infinite.
using CountsUpTo = std::map<double, double>;

struct ServerMetrics {
  std::map<std::string, ServerCounters> models;
  std::map<std::string, TrainingCounters> jobs;
  CountsUpTo acknowledgements;  // Seconds until trainers saw that they may go on or not; of our own server.
  // Requests that were late or refused because of training; empty where the server does not tell.
  std::optional<double> missed_by_training;
  bool ours = false;  // It has metrics that only our own server has.
};

// Reads Prometheus' text form and takes from it what is named above; a server that has none of it gives empty maps.
// A text that is not of that form is an error with the line.
[[nodiscard]] Result<ServerMetrics> ParseServerMetrics(std::string_view text);

// One model's requests as the server saw them during a run.
struct ServerView {
  std::string model;
  std::uint64_t requests = 0;
  double queue_ms = 0, compute_ms = 0, total_ms = 0;  // Means.
};

// Between two readings, for the models that had requests. A model whose counters went back (the server was started
// again, or the model loaded anew) has none.
[[nodiscard]] std::vector<ServerView> Between(const ServerMetrics& before, const ServerMetrics& after);

// The upper bound of the bucket that holds the percentile of what was counted between two readings: the value itself is
// at most that. The largest finite bound for what is above it. Empty when nothing was counted.
[[nodiscard]] std::optional<double> PercentileBound(const CountsUpTo& before, const CountsUpTo& after, double percent);

}  // namespace tandem::loadgen
