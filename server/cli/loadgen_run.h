#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "loadgen/request_csv.h"
#include "loadgen/run.h"
#include "loadgen/run_report.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/interruption.h"
#include "server/cli/loadgen_view.h"

namespace CLI {
class App;
}

namespace tandem::cli {

// One load on one model, as the command line says it.
struct LoadgenOptions {
  ClientOptions client;
  std::string model;
  std::string version;
  std::string arrivals;  // Empty: poisson, or closed with users.
  std::optional<double> rate;
  std::optional<int> users;
  double duration = 10;
  double warmup = 1;
  double slo_ms = 0;
  bool send_slo = true;
  double percentile = 99;
  double confidence = 0.99;
  std::string format = "binary";
  std::vector<std::string> inputs;
  std::vector<std::string> shapes;
  std::uint32_t seed = 1;
  std::size_t connections = 1024;
  double request_timeout = 30;
};

// The flags that say it, with those of the client. Nothing is required; PrepareLoad() says what is missing.
void AddLoadFlags(CLI::App& command, LoadgenOptions& options);

// What stands between the command line and the first request.
struct PreparedLoad {
  loadgen::Target target;
  loadgen::LoadSpec spec;
  std::string server;
};

// Asks the server for the model, and makes the request. kInvalidArgument: a mistake on the command line.
[[nodiscard]] Result<PreparedLoad> PrepareLoad(const LoadgenOptions& options);

// One run from its first request to its judged report, shown in `view` as it goes. `csv` may be null.
[[nodiscard]] Result<loadgen::RunReport> RunPrepared(const PreparedLoad& prepared, const LoadgenOptions& options,
                                                     Interruption& interruption, LoadgenView& view,
                                                     loadgen::RequestCsv* csv);

}  // namespace tandem::cli
