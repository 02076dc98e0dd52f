#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loadgen/load_report.h"
#include "loadgen/server_metrics.h"
#include "loadgen/training_series.h"
#include "loadgen/verdict.h"

namespace tandem::loadgen {

// What a run came to as a whole.
enum class RunResult : std::uint8_t {
  kNone,  // No model has an SLO: there is nothing to judge.
  kPass,
  kFail,  // An SLO is not kept, or an answer was wrong.
  kInconclusive,
  kInvalid,  // The generator was itself the bottleneck, or the run was stopped before its time.
};

// As in JSON: "none", "pass", …
[[nodiscard]] std::string_view RunResultName(RunResult result);

// A run with all that is to be said about it.
struct RunReport {
  std::string date;     // UTC, ISO 8601.
  std::string command;  // As it was typed.
  std::string url;
  std::string server;  // Name and version as it gives them; empty when it does not.
  LoadReport load;
  std::vector<std::optional<Verdict>> verdicts;  // Of each model; none without an SLO.
  std::vector<std::string> problems;             // Of the generator.
  std::vector<ServerView> server_view;           // Empty when the server has no such metrics.
  TrainingSeries training;                       // The same.
};

// Judges every model that has an SLO, and the generator.
[[nodiscard]] Result<RunReport> JudgeRun(LoadReport load, double percentile, double confidence);

// A wrong answer fails a run whatever else it was. Then invalid comes before all: figures that are not the server's are
// no verdict about it. Then the worst of the models.
[[nodiscard]] RunResult ResultOf(const RunReport& report);

// One JSON object: docs/load-generator.md says what stands in it.
[[nodiscard]] std::string RunReportJson(const RunReport& report);

// The same as a page that shows it, in one file that needs nothing else.
[[nodiscard]] std::string RunReportHtml(const RunReport& report);

}  // namespace tandem::loadgen
