#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"

namespace tandem::bench {

enum class Better : std::uint8_t { kLower, kHigher };

// One figure: the median of its repetitions with the lowest and highest of them; or why there is none.
struct Row {
  std::string metric;  // What was measured: "p50 over bare".
  std::string cell;    // Under which conditions: "tiny, REST binary, 1 connection".
  double value = 0;
  std::string unit;
  double low = 0;
  double high = 0;
  int repetitions = 0;
  std::optional<double> must;  // What is promised; none for a figure that only explains the others.
  std::optional<double> aim;
  Better better = Better::kLower;
  std::string not_run;  // Why there is no figure; empty when there is one.
};

// Whether the value keeps `must`; a row without one always does. A row that did not run is never met.
[[nodiscard]] bool Met(const Row& row);
// Whether a promise is not kept: there is one, and the row misses it or did not run.
[[nodiscard]] bool Missed(const Row& row);

struct Goal {
  std::optional<double> must;
  std::optional<double> aim;
  Better better = Better::kLower;
};

// Median, low and high of `samples`, which must not be empty.
[[nodiscard]] Row MakeRow(std::string metric, std::string cell, std::string unit, std::vector<double> samples,
                          const Goal& goal = {});
// A row without a figure, and why.
[[nodiscard]] Row MakeRowNotRun(std::string metric, std::string cell, std::string unit, std::string why,
                                const Goal& goal = {});
[[nodiscard]] double Median(std::vector<double> samples);

// The machine in words that say nothing about whose it is.
struct Machine {
  std::string cpu;
  int cores = 0;  // That this process may use, its CPU quota counted.
  double memory_gb = 0;
  std::string kernel;
  std::string os;
  std::string onnx_runtime;  // Version.
};

struct Report {
  std::string scenario;
  std::string date;    // UTC, ISO 8601.
  std::string commit;  // "unknown" outside a checkout.
  Machine machine;
  std::vector<Row> rows;
};

// The one stable form of every scenario's figures.
[[nodiscard]] std::string ReportJson(const Report& report);
// Reads that form back. Whether a row is met is computed from its figures, not taken from the text.
[[nodiscard]] Result<Report> ParseReport(std::string_view text);

[[nodiscard]] std::string ReportMarkdown(const Report& report);

// "missed: p50 over bare (tiny, …): 180 µs, must be at most 150 µs", or "not run: …" with the reason.
[[nodiscard]] std::string MissedText(const Row& row);

[[nodiscard]] std::string IsoDate(WallTime time);

}  // namespace tandem::bench
