#include "bench/load_window.h"

#include <utility>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "loadgen/grpc_transport.h"
#include "loadgen/run.h"

namespace tandem::bench {
namespace {

Result<loadgen::ModelReport> OnlyModel(Result<loadgen::LoadReport> report) {
  if (!report) return std::unexpected(std::move(report).error());
  loadgen::ModelReport model = std::move(report->models.front());
  if (model.counts.failed + model.counts.rejected > 0) {
    const std::string reason = model.failures.empty() ? "rejected" : model.failures.begin()->first;
    return Fail(ErrorCode::kInternal, "{} of {} requests over {} failed: {}",
                model.counts.failed + model.counts.rejected, model.counts.total(), model.model, reason);
  }
  if (model.latency.count() == 0) {
    return Fail(ErrorCode::kInternal, "no request over {} was answered within the window", model.model);
  }
  return model;
}

loadgen::LoadSpec WindowSpec(const Pace& pace, int users, const char* what, const loadgen::HttpRequest& request) {
  loadgen::LoadSpec spec;
  spec.duration = pace.window;
  spec.warmup = pace.warmup;
  spec.connections = static_cast<std::size_t>(users);
  spec.models.push_back(
      {.model = what, .request = request, .arrivals = loadgen::ArrivalSpec::Closed(users), .slo = {}});
  return spec;
}

}  // namespace

Result<loadgen::ModelReport> HttpWindow(const Pace& pace, int port, const loadgen::HttpRequest& request, int users) {
  loadgen::LoadSpec spec = WindowSpec(pace, users, "HTTP", request);
  spec.port = port;
  return OnlyModel(loadgen::RunLoad(spec));
}

Result<loadgen::ModelReport> GrpcWindow(const Pace& pace, int port, const std::string& model,
                                        const std::vector<Tensor>& inputs, int users) {
  const loadgen::LoadSpec spec = WindowSpec(pace, users, "gRPC", {});
  TANDEM_ASSIGN(auto transport,
                loadgen::GrpcTransport::Create({.port = port}, {{.model = model, .version = "", .inputs = inputs}},
                                               RealClock::Instance()));
  return OnlyModel(loadgen::DriveLoad(spec, *transport, RealClock::Instance()));
}

loadgen::HttpRequest RawRequest(int port, const std::string& path, const Tensor& tensor) {
  loadgen::HttpRequest request;
  request.head = Format(
      "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
      path, port, tensor.data.size());
  request.parts.push_back(tensor.data);
  return request;
}

}  // namespace tandem::bench
