#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "loadgen/arrivals.h"
#include "loadgen/http_request.h"
#include "loadgen/load_report.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

// The load on one model.
struct ModelLoad {
  std::string model;  // For the report; the request names the model to the server.
  HttpRequest request;
  ArrivalSpec arrivals;
  std::optional<std::chrono::nanoseconds> slo;
};

struct LoadSpec {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::vector<ModelLoad> models;
  std::chrono::nanoseconds duration = std::chrono::seconds(10);  // Measured.
  std::chrono::nanoseconds warmup{0};                            // Before that; not counted.
  std::uint64_t seed = 1;
  std::size_t connections = 1024;  // At most; at least one for each user of a closed loop.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
  std::chrono::nanoseconds progress_interval = std::chrono::seconds(1);
};

// What happened since the progress before; the warm-up counts here.
struct ModelProgress {
  OutcomeCounts counts;
  double rate = 0;  // Answered requests per second.
  std::chrono::nanoseconds p50{0}, p99{0};
};

struct LoadProgress {
  std::chrono::nanoseconds elapsed{0};  // Since the start, warm-up included.
  std::chrono::nanoseconds planned{0};
  std::size_t outstanding = 0;
  std::vector<ModelProgress> models;  // As in the spec.
};

// A request that has come to an outcome.
struct JudgedRequest {
  const RequestRecord& record;
  MonotonicTime start;  // Of the run, warm-up included.
  bool warmup = false;  // It was due in the warm-up and counts in no figure.
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};
};

// Called on the generator's thread: they must be short.
struct LoadHooks {
  std::function<void(const LoadProgress&)> on_progress;
  std::function<void(const JudgedRequest&)> on_request;  // Every one.
  const std::atomic<bool>* stop = nullptr;               // Borrowed; ends the run early when true.
};

// Offers the load from the calling thread and returns when every request has come to an outcome. An unreachable server
// or a spec that makes no sense is an error; what goes wrong later is in the report.
[[nodiscard]] Result<LoadReport> RunLoad(const LoadSpec& spec, const LoadHooks& hooks = {});

// The same over any transport and clock; request i of the transport is that of model i. spec.host, port, connections
// and request_timeout are the transport's affair.
[[nodiscard]] Result<LoadReport> DriveLoad(const LoadSpec& spec, Transport& transport, const Clock& clock,
                                           const LoadHooks& hooks = {});

}  // namespace tandem::loadgen
