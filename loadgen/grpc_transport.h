#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

// One ModelInfer call, inputs as raw contents.
struct GrpcInferRequest {
  std::string model;
  std::string version;  // Empty: the server's choice.
  std::vector<Tensor> inputs;
};

struct GrpcTransportOptions {
  std::string host = "127.0.0.1";
  int port = 8001;
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
};

// ModelInfer over one gRPC channel, on the thread that calls Poll(). Requests are serialised once, answers are not
// parsed. In records a gRPC status stands as the HTTP status that REST would give. Meant for closed loops: gRPC wakes a
// waiting thread on whole milliseconds only, too coarse for an open one.
class GrpcTransport final : public Transport {
 public:
  // Waits for the channel to connect.
  [[nodiscard]] static Result<std::unique_ptr<GrpcTransport>> Create(const GrpcTransportOptions& options,
                                                                     const std::vector<GrpcInferRequest>& requests,
                                                                     const Clock& clock);
  ~GrpcTransport() override;
  GrpcTransport(const GrpcTransport&) = delete;
  GrpcTransport& operator=(const GrpcTransport&) = delete;

  void Send(std::size_t request, MonotonicTime scheduled) override;
  void Poll(MonotonicTime until, std::vector<RequestRecord>& finished) override;
  [[nodiscard]] std::size_t outstanding() const override;

 private:
  struct Call;
  struct Parts;
  explicit GrpcTransport(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::loadgen
