#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "loadgen/answer_check.h"
#include "loadgen/arrivals.h"
#include "loadgen/grpc_transport.h"
#include "loadgen/http_request.h"
#include "loadgen/load_report.h"
#include "loadgen/target.h"
#include "loadgen/tls_client.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

// A request as it is sent, over the one kind of transport or the other.
using WireRequest = std::variant<HttpRequest, GrpcInferRequest>;

struct SizedRequest {
  std::uint32_t batch = 1;
  WireRequest request;
};

// The load on one model.
struct ModelLoad {
  std::string model;    // For the report; the request names the model to the server.
  WireRequest request;  // Sent for every arrival, unless there are `sizes`.
  ArrivalSpec arrivals;
  std::optional<std::chrono::nanoseconds> slo;
  // For arrivals that name batch sizes: the request of each that occurs.
  std::vector<SizedRequest> sizes;
  std::string name;                   // Tells two loads on one model apart in reports; empty: the model.
  std::uint32_t batch = 1;            // Of `request`; for the report.
  std::optional<Expectation> expect;  // Of every answer. Its requests must have keep_body set.
};

struct LoadSpec {
  std::string host = "127.0.0.1";
  int port = 8000;
  Scheme scheme = Scheme::kHttp;  // All requests must be of its kind.
  TlsClientOptions tls;           // For https and grpcs.
  std::size_t channels = 1;       // Of gRPC.
  std::vector<ModelLoad> models;
  std::chrono::nanoseconds duration = std::chrono::seconds(10);  // Measured.
  std::chrono::nanoseconds warmup{0};                            // Before that; not counted.
  std::uint64_t seed = 1;
  std::size_t connections = 1024;  // Of HTTP, at most; at least one for each user of a closed loop.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
  std::chrono::nanoseconds progress_interval = std::chrono::seconds(1);
};

// All requests of a load, numbered as its transport must number them: model by model, of each the one request or those
// of its sizes. Borrowed from the spec.
[[nodiscard]] std::vector<const WireRequest*> RequestsOf(const LoadSpec& spec);

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
  MonotonicTime start;    // Of the run, warm-up included.
  std::size_t model = 0;  // Index in the spec.
  std::uint32_t batch = 1;
  bool warmup = false;  // It was due in the warm-up and counts in no figure.
  Outcome outcome = Outcome::kOk;
  std::chrono::nanoseconds latency{0};
  std::string_view reason;  // Why it failed: "HTTP 500", "timed out", "wrong answer"; else empty.
};

// Called on the generator's thread: they must be short.
struct LoadHooks {
  std::function<void(const LoadProgress&)> on_progress;
  std::function<void(const JudgedRequest&)> on_request;  // Every one.
  const std::atomic<bool>* stop = nullptr;               // Borrowed; ends the run early when true.
  // Borrowed; when true the run is as long as it has lasted so far: nothing more is sent, and it is not partial.
  const std::atomic<bool>* enough = nullptr;
};

// Offers the load from the calling thread and returns when every request has come to an outcome. An unreachable server
// or a spec that makes no sense is an error; what goes wrong later is in the report.
[[nodiscard]] Result<LoadReport> RunLoad(const LoadSpec& spec, const LoadHooks& hooks = {});

// The same over any transport that holds RequestsOf(spec), and any clock. Where the server is and how it is reached is
// the transport's affair.
[[nodiscard]] Result<LoadReport> DriveLoad(const LoadSpec& spec, Transport& transport, const Clock& clock,
                                           const LoadHooks& hooks = {});

}  // namespace tandem::loadgen
