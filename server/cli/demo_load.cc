#include "server/cli/demo_load.h"

#include <algorithm>
#include <utility>

#include "api/base/format.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/target.h"
#include "server/cli/infer_inputs.h"

namespace tandem::cli {
namespace {

using std::chrono::nanoseconds;

Result<loadgen::ModelLoad> LoadOn(const DemoModel& model, int port, loadgen::ArrivalSpec arrivals,
                                  std::optional<nanoseconds> slo) {
  loadgen::InferRequestOptions options{.port = port, .model = model.name};
  if (slo) {
    const double ms = std::chrono::duration<double, std::milli>(*slo).count();
    options.headers.emplace_back("X-SLO-Ms", Format("{}", ms));
  }
  TANDEM_ASSIGN(loadgen::HttpRequest request, loadgen::BuildInferRequest(options, model.inputs));
  request.keep_body = model.keep_answers;
  return loadgen::ModelLoad{
      .model = model.name, .request = std::move(request), .arrivals = std::move(arrivals), .slo = slo};
}

}  // namespace

Result<DemoModel> SampleModel(ApiClient& client, const std::string& name) {
  TANDEM_ASSIGN(const Json::Value metadata, client.Get("/v2/models/" + loadgen::PathSegment(name)));
  TANDEM_ASSIGN(const ModelSignature signature, SignatureFromMetadata(metadata));
  DemoModel model{.name = name, .inputs = {}};
  TANDEM_ASSIGN(model.inputs, loadgen::RandomInputs(signature, {}));
  return model;
}

Status MeasureAlone(DemoModel& model, int port, const loadgen::LoadHooks& hooks) {
  loadgen::LoadSpec spec{.port = port, .models = {}, .duration = std::chrono::milliseconds(500)};
  TANDEM_ASSIGN(spec.models.emplace_back(), LoadOn(model, port, loadgen::ArrivalSpec::Closed(1), std::nullopt));
  TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(spec, hooks));
  if (hooks.stop != nullptr && *hooks.stop) return {};
  if (report.models[0].counts.ok == 0) {
    const auto& failures = report.models[0].failures;
    return Fail(ErrorCode::kInternal, "model '{}' does not answer: {}", model.name,
                failures.empty() ? "no request finished" : failures.begin()->first);
  }
  model.alone = report.models[0].latency.Percentile(50);
  return {};
}

Result<loadgen::LoadSpec> PlanLoad(const std::vector<DemoModel>& models, double load, int port) {
  nanoseconds all{0};
  for (const DemoModel& model : models) all += model.alone;
  const nanoseconds slo = std::max<nanoseconds>(std::chrono::milliseconds(50), 4 * all);
  loadgen::LoadSpec spec{.port = port, .models = {}};
  for (const DemoModel& model : models) {
    double rate = load / static_cast<double>(models.size()) / std::chrono::duration<double>(model.alone).count();
    if (model.most_rate) rate = std::min(rate, *model.most_rate);
    TANDEM_ASSIGN(spec.models.emplace_back(), LoadOn(model, port, loadgen::ArrivalSpec::Poisson(rate), slo));
  }
  return spec;
}

}  // namespace tandem::cli
