#pragma once

#include <CLI/CLI.hpp>

#include "api/base/error.h"

namespace tandem::cli {

// Exit codes of every command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUndecided = 3;  // A load that neither passed nor failed, or says nothing about the server.

// kUsage for a mistake on the command line, the other for what went wrong with it right.
[[nodiscard]] inline int UsageOr(const Error& error, int otherwise) {
  return error.code == ErrorCode::kInvalidArgument ? kUsage : otherwise;
}

// Options of `serve` can stand in a file; CLI11 reads such a file only for the program as a whole, so main() calls
// this.
void ReadServeOptionsFromFile(CLI::App& app);

// Each adds one subcommand to `app`; when it is the one called, it runs inside app.parse() and sets `exit_code`, which
// outlives the parse.
void AddServeCommand(CLI::App& app, int& exit_code);
void AddDemoCommand(CLI::App& app, int& exit_code);
void AddModelsCommand(CLI::App& app, int& exit_code);
void AddInferCommand(CLI::App& app, int& exit_code);
void AddLoadgenCommand(CLI::App& app, int& exit_code);
void AddTrainCommand(CLI::App& app, int& exit_code);
void AddMemoryCommand(CLI::App& app, int& exit_code);
void AddProfileCommand(CLI::App& app, int& exit_code);
void AddTraceCommand(CLI::App& app, int& exit_code);
void AddSimulateCommand(CLI::App& app, int& exit_code);
void AddDoctorCommand(CLI::App& app, int& exit_code);
void AddVersionCommand(CLI::App& app, int& exit_code);

}  // namespace tandem::cli
