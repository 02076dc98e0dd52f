#include "bench/serving_parts.h"

#include <format>

#include "api/base/clock.h"
#include "loadgen/grpc_transport.h"
#include "loadgen/run.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

Result<loadgen::ModelReport> OnlyModel(Result<loadgen::LoadReport> report) {
  if (!report) return std::unexpected(std::move(report).error());
  loadgen::ModelReport model = std::move(report->models.front());
  if (model.counts.failed + model.counts.rejected > 0) {
    const std::string reason = model.failures.empty() ? "rejected" : model.failures.begin()->first;
    return Fail(ErrorCode::kInternal, "{} of {} requests to '{}' failed: {}",
                model.counts.failed + model.counts.rejected, model.counts.total(), model.model, reason);
  }
  if (model.latency.count() == 0) {
    return Fail(ErrorCode::kInternal, "no request to '{}' was answered within the window", model.model);
  }
  return model;
}

loadgen::LoadSpec WindowSpec(const ServingContext& context, int users) {
  loadgen::LoadSpec spec;
  spec.duration = context.pace.window;
  spec.warmup = context.pace.warmup;
  spec.connections = static_cast<std::size_t>(users);
  return spec;
}

}  // namespace

Pace Pace::Quick() {
  return {.rounds = 3, .warmup = 100ms, .window = 500ms, .starts = 3};
}

Status ServingContext::CheckStop() const {
  if (stop != nullptr && stop->load()) return Fail(ErrorCode::kCancelled, "interrupted");
  return {};
}

std::filesystem::path ServingContext::ModelFile(const std::string& model) const {
  return repositories / model / model / "1" / "model.onnx";
}

Result<std::unique_ptr<ServerProcess>> ServingContext::StartServer(const std::string& repository) const {
  return ServerProcess::Start(
      {.program = program, .repository = repositories / repository, .flags = {"--threads", std::to_string(threads)}},
      60s);
}

Result<std::vector<std::vector<double>>> Interleave(const ServingContext& context, std::string_view what, int rounds,
                                                    const std::vector<Sample>& sides) {
  std::vector<std::vector<double>> samples(sides.size());
  for (int round = 0; round < rounds; ++round) {
    context.say(std::format("{}: round {} of {}", what, round + 1, rounds));
    for (std::size_t i = 0; i < sides.size(); ++i) {
      // Back and forth, so that no side always follows the same other.
      const std::size_t side = round % 2 == 0 ? i : sides.size() - 1 - i;
      TANDEM_TRY(context.CheckStop());
      TANDEM_ASSIGN(const double sample, sides[side]());
      samples[side].push_back(sample);
    }
  }
  return samples;
}

std::vector<double> Combine(const std::vector<double>& a, const std::vector<double>& b, double (*f)(double, double)) {
  std::vector<double> combined;
  combined.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) combined.push_back(f(a[i], b[i]));
  return combined;
}

Result<loadgen::ModelReport> RestWindow(const ServingContext& context, int port, const loadgen::HttpRequest& request,
                                        int users) {
  loadgen::LoadSpec spec = WindowSpec(context, users);
  spec.port = port;
  spec.models.push_back(
      {.model = "REST", .request = request, .arrivals = loadgen::ArrivalSpec::Closed(users), .slo = {}});
  return OnlyModel(loadgen::RunLoad(spec));
}

Result<loadgen::ModelReport> GrpcWindow(const ServingContext& context, int port, const std::string& model,
                                        const std::vector<Tensor>& inputs, int users) {
  loadgen::LoadSpec spec = WindowSpec(context, users);
  spec.models.push_back({.model = "gRPC", .request = {}, .arrivals = loadgen::ArrivalSpec::Closed(users), .slo = {}});
  TANDEM_ASSIGN(auto transport,
                loadgen::GrpcTransport::Create({.port = port}, {{.model = model, .version = "", .inputs = inputs}},
                                               RealClock::Instance()));
  return OnlyModel(loadgen::DriveLoad(spec, *transport, RealClock::Instance()));
}

}  // namespace tandem::bench
