#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "loadgen/tls_client.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

// One ModelInfer call, inputs as raw contents.
struct GrpcInferRequest {
  std::string model;
  std::string version;  // Empty: the server's choice.
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;       // Empty: all.
  std::optional<double> slo_ms;           // Request parameter `slo_ms`.
  std::optional<std::uint32_t> priority;  // Request parameter `priority`.
  // Goes before the call: {"authorization", "Bearer …"}, {"x-slo-ms", "100"}. Names in lower case.
  std::vector<std::pair<std::string, std::string>> metadata;
  bool keep_body = false;  // Hand the answer to the caller: a serialised ModelInferResponse.
};

struct GrpcTransportOptions {
  std::string host = "127.0.0.1";  // A name, or an IPv4 or IPv6 address.
  int port = 8001;
  // Connections; calls take turns on them. A server bounds how many calls one connection carries at once.
  std::size_t channels = 1;
  // Calls under way at once. More wait in order until one has ended: a call takes 14 KB of gRPC's, a waiting one 200
  // bytes.
  std::size_t max_calls = 32'768;
  // The deadline of every call, which the server is told as well.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::optional<TlsClientOptions> tls;
};

// ModelInfer over gRPC, for open loops and closed ones. Any number of calls may be outstanding. Requests are serialised
// once, answers are not parsed.
//
// In records a gRPC status stands as the HTTP status that REST would give: what the server refuses for want of time or
// room (RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED before ours) is a 503. gRPC hands out a unary answer only
// when it is complete: `first_byte` is `done`.
//
// A thread of its own waits for answers and notes when they came; Send(), Poll() and outstanding() belong to one thread
// of the caller's. Calls that are outstanding at the end are cancelled.
class GrpcTransport final : public Transport {
 public:
  // Waits for the channels to connect, so that an unreachable server is an error here.
  [[nodiscard]] static Result<std::unique_ptr<GrpcTransport>> Create(const GrpcTransportOptions& options,
                                                                     const std::vector<GrpcInferRequest>& requests,
                                                                     const Clock& clock);
  ~GrpcTransport() override;
  GrpcTransport(const GrpcTransport&) = delete;
  GrpcTransport& operator=(const GrpcTransport&) = delete;

  void Send(std::size_t request, MonotonicTime scheduled) override;
  void Poll(MonotonicTime until, std::vector<RequestRecord>& finished) override;
  [[nodiscard]] std::size_t outstanding() const override;
  [[nodiscard]] std::chrono::nanoseconds OwnCpuTime() const override;

 private:
  struct Call;
  struct Arrival;
  struct Parts;
  explicit GrpcTransport(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::loadgen
