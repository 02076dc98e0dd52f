#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/result.h"
#include "server/cli/api_client.h"
#include "server/cli/infer_inputs.h"

namespace CLI {
class App;
}

namespace tandem::cli {

// What the answers of a model are compared with.
struct ExpectOptions {
  bool first = false;                                      // Each request's first answer, or
  std::string npz;                                         // a file with all outputs, or
  std::vector<std::pair<std::string, std::string>> files;  // an output and its .npy file, each.
  double tolerance = 0;
  std::uint32_t every = 1;
  std::string where = "--expect";  // For messages.

  [[nodiscard]] bool any() const { return first || !npz.empty() || !files.empty(); }
};

// The load on one model, as the command line or a specification says it.
struct ModelOptions {
  std::string model;
  std::string name;  // In reports; empty: the model.
  std::string version;
  std::string arrivals;  // Empty: poisson, or closed with users.
  std::optional<double> rate;
  std::optional<int> users;
  double slo_ms = 0;  // 0: none.
  bool send_slo = true;
  BatchChoice batch;
  std::optional<std::uint32_t> priority;
  std::string format = "binary";
  InferChoices choices;
  ExpectOptions expect;
  std::string where;  // Stands before messages about it: "/models/1: "; empty on the command line.
};

// A whole run, with nothing left open.
struct RunOptions {
  ClientOptions client;
  std::string metrics_url;  // Empty: the server itself, over HTTP.
  std::vector<ModelOptions> models;
  double duration = 10;
  double warmup = 1;
  double percentile = 99;
  double confidence = 0.99;
  std::uint32_t seed = 1;
  std::size_t connections = 1024;
  std::size_t channels = 8;
  double request_timeout = 30;
};

// Bounds of what can be said, on the command line and in a specification alike.
struct LoadLimits {
  static constexpr double kMinDuration = 0.1, kMaxDuration = 604'800;
  static constexpr double kMaxWarmup = 86'400;
  static constexpr double kMinSloMs = 0.001, kMaxSloMs = 86'400'000;
  static constexpr double kMinPercentile = 1, kMaxPercentile = 99.999;
  static constexpr double kMinConfidence = 0.5, kMaxConfidence = 0.99999;
  static constexpr double kMinTimeout = 0.01, kMaxTimeout = 86'400;
  static constexpr std::int64_t kMaxConnections = 100'000;
  static constexpr std::int64_t kMaxChannels = 1024;
  static constexpr std::int64_t kMaxBatch = 1'000'000;
  static constexpr std::int64_t kMaxPriority = 4'294'967'295;
  static constexpr std::int64_t kMaxCheckEvery = 1'000'000'000;
  static constexpr double kMaxTolerance = 1e30;
};

// What the flags say. The run's own are empty where they are not given, so that a specification can say them.
struct LoadgenOptions {
  ClientOptions client;
  bool url_given = false;
  std::string spec_file;
  ModelOptions model;
  std::vector<std::string> inputs, shapes, expect;
  std::string metrics_url;
  std::optional<double> duration, warmup, percentile, confidence, request_timeout;
  std::optional<std::uint32_t> seed;
  std::optional<std::size_t> connections, channels;
};

// The flags, with those of the client. Nothing is required. `options` must outlive the parse.
void AddLoadFlags(CLI::App& command, LoadgenOptions& options);

// What the specification says, if one is given, and the flags over it. kInvalidArgument: a mistake in either.
[[nodiscard]] Result<RunOptions> ResolveOptions(const LoadgenOptions& options);

// "first", "FILE.npz" and "OUTPUT=FILE.npy" into `expect`.
[[nodiscard]] Status ParseExpect(const std::vector<std::string>& texts, ExpectOptions& expect);

}  // namespace tandem::cli
