#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadgen/latency_histogram.h"
#include "loadgen/outcome.h"
#include "loadgen/time_series.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

// One model's part of a run. Only requests scheduled after the warm-up count.
struct ModelReport {
  std::string model;
  std::string name;  // Of the load: the model, unless it was given one.
  bool open_loop = true;
  std::optional<std::chrono::nanoseconds> slo;
  OutcomeCounts counts;
  std::map<std::string, std::uint64_t> failures;  // By reason: "HTTP 400", "timed out", "wrong answer", …
  // Answers that were compared with what they must be, and those that were something else; the warm-up counts here.
  std::uint64_t checked = 0, wrong = 0;
  std::string first_wrong;   // What was wrong with the first of them.
  LatencyHistogram latency;  // Of answered requests, ok and late.
  LatencyHistogram rejection_latency;
  TimeSeries timeline;          // From the end of the warm-up on.
  std::uint64_t scheduled = 0;  // In the measured time; in a stopped run more than counts.total().
  double offered_rate = 0;      // Scheduled requests per second.
  double achieved_rate = 0;     // Answers per second of the measured time; those that came later do not count.
  double goodput = 0;           // The same of answers within the SLO.
  double attainment = 0;        // Share of scheduled requests answered within the SLO.
};

// Whether the generator itself kept up; its own lag is part of every latency that it reports.
struct GeneratorHealth {
  LatencyHistogram send_lag;  // From scheduled to submitted; open loops only.
  std::uint64_t queued = 0;   // Requests that found no free connection.
  double cpu_share = 0;       // Of the generator's busiest thread: 1 is a whole core.
  LatencyHistogram check;     // What it took to compare one answer; part of the lag of what was due meanwhile.
};

struct LoadReport {
  MonotonicTime start;                   // Of the measured time.
  std::chrono::nanoseconds measured{0};  // Without the warm-up.
  bool partial = false;                  // Stopped before its time.
  std::vector<ModelReport> models;
  GeneratorHealth health;
};

// Why the figures of a run say more about the generator than about the server; empty when they do not. `tightest_slo`
// is the shortest bound that they are held against.
[[nodiscard]] std::vector<std::string> GeneratorProblems(const GeneratorHealth& health,
                                                         std::optional<std::chrono::nanoseconds> tightest_slo);

inline constexpr std::string_view kWrongAnswer = "wrong answer";  // As a reason for failure.

// Latency as counted in this kind of loop.
[[nodiscard]] std::chrono::nanoseconds LatencyOf(const RequestRecord& record, bool open_loop);
[[nodiscard]] Outcome OutcomeOf(const RequestRecord& record, std::chrono::nanoseconds latency,
                                std::optional<std::chrono::nanoseconds> slo);

// JSON objects; times in milliseconds unless a name says otherwise.
[[nodiscard]] std::string ModelReportJson(const ModelReport& model);
[[nodiscard]] std::string GeneratorJson(const GeneratorHealth& health);
[[nodiscard]] std::string LoadReportJson(const LoadReport& report);

}  // namespace tandem::loadgen
