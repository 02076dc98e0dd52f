#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "bench/report.h"
#include "bench/server_process.h"
#include "loadgen/http_request.h"
#include "loadgen/load_report.h"
#include "runtimes/onnx/ort_environment.h"

namespace tandem::bench {

// How long and how often: many short windows in turn, so that a noisy minute hits every side alike.
struct Pace {
  int rounds = 9;
  std::chrono::nanoseconds warmup = std::chrono::milliseconds(300);
  std::chrono::nanoseconds window = std::chrono::seconds(2);
  int starts = 7;  // Of a server.

  [[nodiscard]] static Pace Quick();
};

// What every part of the scenario needs. Owned by RunServing().
struct ServingContext {
  Pace pace;
  std::filesystem::path program;                      // The tandem program.
  std::filesystem::path repositories;                 // Holds "empty", "tiny" and "squeezenet".
  int threads = 1;                                    // Of one run, in the server and bare.
  std::shared_ptr<const OrtEnvironment> environment;  // Shared with the bare sessions, which may outlive us.
  std::function<void(std::string_view)> say;          // Progress, for people.
  const std::atomic<bool>* stop = nullptr;            // Borrowed; may be null.

  [[nodiscard]] Status CheckStop() const;
  [[nodiscard]] std::filesystem::path ModelFile(const std::string& model) const;
  [[nodiscard]] Result<std::unique_ptr<ServerProcess>> StartServer(const std::string& repository) const;
};

// One measurement of one side.
using Sample = std::function<Result<double>()>;

// Takes a sample of each side in every round, back and forth; one list of samples for each side.
[[nodiscard]] Result<std::vector<std::vector<double>>> Interleave(const ServingContext& context, std::string_view what,
                                                                  int rounds, const std::vector<Sample>& sides);

// For each round f(a, b).
[[nodiscard]] std::vector<double> Combine(const std::vector<double>& a, const std::vector<double>& b,
                                          double (*f)(double, double));

// A closed loop of `users` for one window. A request that fails is an error: its time would mean nothing.
[[nodiscard]] Result<loadgen::ModelReport> RestWindow(const ServingContext& context, int port,
                                                      const loadgen::HttpRequest& request, int users);
[[nodiscard]] Result<loadgen::ModelReport> GrpcWindow(const ServingContext& context, int port, const std::string& model,
                                                      const std::vector<Tensor>& inputs, int users);

// The parts of the scenario, each with its rows.
[[nodiscard]] Result<std::vector<Row>> MeasureTinyModel(const ServingContext& context, const ServerProcess& server);
[[nodiscard]] Result<std::vector<Row>> MeasureSqueezenet(const ServingContext& context, const ServerProcess& server);
[[nodiscard]] Result<std::vector<Row>> MeasureStart(const ServingContext& context);
// On a server that has done nothing yet and has only the tiny model.
[[nodiscard]] Result<std::vector<Row>> MeasureIdleMemory(const ServingContext& context, const ServerProcess& server);
[[nodiscard]] Result<std::vector<Row>> MeasureIdleConnections(const ServingContext& context,
                                                              const ServerProcess& server);

inline constexpr int kIdleConnections = 10'000;

}  // namespace tandem::bench
