#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "colocation/simulation/scenario.h"

namespace tandem::cli {

// One scenario of a file, or one case of it.
struct SimulatedCase {
  std::string name;  // Empty when the file has no cases.
  simulation::Scenario scenario;
  int rounds = 1;  // Simulations that begin anew, each with a seed of its own.
};

// A file of `tandem simulate`, read and checked: docs/simulator.md has its form.
struct SimulationFile {
  std::string name;
  std::string what;
  std::vector<SimulatedCase> cases;  // At least one.
};

// What the command line says in place of the file.
struct SimulationChanges {
  std::optional<double> seconds;
  std::optional<double> requests;  // About so many, over all models and rounds, in place of seconds.
  std::optional<std::uint64_t> seed;
};

// kInvalidArgument names every member that is wrong by its JSON pointer, with its value. Profiles that it names are in
// or below `folder`.
[[nodiscard]] Result<SimulationFile> ParseSimulation(std::string_view text, const SimulationChanges& changes = {},
                                                     const std::filesystem::path& folder = ".");

// The error names the file, too; profiles are in or below its folder.
[[nodiscard]] Result<SimulationFile> ReadSimulation(const std::string& file, const SimulationChanges& changes = {});

}  // namespace tandem::cli
