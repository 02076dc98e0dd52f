#pragma once

#include <cstdint>
#include <map>
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

struct ServerMetrics {
  std::map<std::string, ServerCounters> models;
  std::map<std::string, TrainingCounters> jobs;
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

}  // namespace tandem::loadgen
