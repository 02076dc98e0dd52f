#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "bench/measurement.h"
#include "bench/pace.h"
#include "bench/peer_spec.h"
#include "bench/row_spec.h"

namespace tandem::bench {

// One measurement of a scenario, and what is shown of it.
struct ScenarioPart {
  std::unique_ptr<Measurement> measurement;
  bool full_only = false;     // Left out at the quick pace.
  std::optional<Pace> full;   // Of its own, for one that cannot be made in short windows; null: the scenario's.
  std::optional<Pace> quick;  // The same.
  std::vector<RowSpec> rows;
};

// A scenario file, read and checked: docs/benchmarks.md has its form. Constant once it is read.
struct Scenario {
  std::string name;
  std::string what;
  Pace full;
  Pace quick;
  std::vector<PeerSpec> peers;
  std::vector<ScenarioPart> parts;
};

// What is left of it at the quick pace.
void KeepQuick(Scenario& scenario);

// kInvalidArgument begins with the place in the file as a JSON pointer. With a quota (cores), every measurement that
// has one gets this one instead, and what the file then has twice is left out; an error where none has.
[[nodiscard]] Result<Scenario> ParseScenario(std::string_view text, const MeasurementKinds& kinds,
                                             std::optional<double> quota = {});

// The error names the file, too.
[[nodiscard]] Result<Scenario> ReadScenario(const std::filesystem::path& file, const MeasurementKinds& kinds,
                                            std::optional<double> quota = {});

// The scenario files of a folder, in the order of their names.
[[nodiscard]] std::vector<std::filesystem::path> ScenarioFiles(const std::filesystem::path& folder);

inline constexpr std::size_t kMaxScenarioBytes = 1 << 20;

}  // namespace tandem::bench
