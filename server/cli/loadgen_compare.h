#pragma once

namespace CLI {
class App;
}

namespace tandem::cli {

// Adds `compare SPEC` to the command `loadgen`: two or more loads in turn within one run, and how they relate.
void AddCompareCommand(CLI::App& loadgen, int& exit_code);

}  // namespace tandem::cli
