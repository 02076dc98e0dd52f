#pragma once

#include <optional>
#include <string>

#include "api/base/result.h"
#include "loadgen/metrics_watch.h"
#include "loadgen/run.h"
#include "server/cli/loadgen_options.h"

namespace tandem::cli {

// What stands between the options and the first request.
struct PreparedLoad {
  loadgen::LoadSpec spec;
  std::optional<loadgen::MetricsSource> metrics;  // Nothing where none is known.
  std::string url;
  std::string server;  // Name and version; empty when it does not say.
  double percentile = 99;
  double confidence = 0.99;
};

// Asks the server for the models, and makes the requests. kInvalidArgument: a mistake in the options.
[[nodiscard]] Result<PreparedLoad> PrepareLoad(const LoadgenOptions& options);

}  // namespace tandem::cli
