#pragma once

namespace CLI {
class App;
}

namespace tandem::cli {

// Adds `convert COUNTS TRACE` to the command `loadgen`: a trace file from counts per minute.
void AddConvertCommand(CLI::App& loadgen, int& exit_code);

}  // namespace tandem::cli
