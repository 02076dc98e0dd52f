#pragma once

#include <optional>
#include <string>
#include <vector>

#include "loadgen/load_report.h"
#include "server/cli/demo_served.h"
#include "server/cli/demo_training.h"

namespace tandem::cli {

// Everything that a demo has come to. A part that was not reached is not there.
struct DemoOutcome {
  std::optional<loadgen::LoadReport> building;  // While the trainer was being built; in no figure but the counts.
  std::optional<loadgen::LoadReport> alone;     // Nothing beside it.
  std::optional<loadgen::LoadReport>
      unmanaged;                              // Beside training as an equal, for comparison; in no figure but its own.
  std::optional<double> unmanaged_rate;       // Steps a second of that training.
  std::optional<loadgen::LoadReport> beside;  // From the submission of the job to its publication.
  std::optional<loadgen::LoadReport> after;   // With the new version.
  bool training_wanted = false;
  std::string policy = "tandem";  // Of the training beside requests.
  std::string not_trained;        // Why there was no training though it was wanted.
  std::optional<TrainingStatus> training;
  std::optional<ServedDigits> served;
  bool interrupted = false;
};

struct DemoVerdict {
  std::string text;  // Lines, the last of which sums up.
  bool passed = false;
};

// Passed: requests were answered, none failed and, with training, what it made is served by a new version whose answers
// are better than those before.
[[nodiscard]] DemoVerdict JudgeDemo(const DemoOutcome& outcome);

// A table of the models: all requests counted but those for comparison, latency with nothing beside them and, where
// there was training, beside that. Empty when no load was sent.
[[nodiscard]] std::string DemoTable(const DemoOutcome& outcome);

// The same for programs: the reports by their names, and with training what it came to. Without training it is the
// report of the load alone.
[[nodiscard]] std::string DemoJson(const DemoOutcome& outcome);

}  // namespace tandem::cli
