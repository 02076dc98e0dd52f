#include "bench/policy_side.h"

#include <thread>
#include <utility>

#include "api/base/duration.h"
#include "bench/run_queue.h"
#include "bench/run_queue_probe.h"
#include "loadgen/run.h"

namespace tandem::bench {

using namespace std::chrono_literals;

Result<std::unique_ptr<PolicySide>> PolicySide::Start(const BenchContext& context, const Spec& spec,
                                                      const std::string& policy) {
  TrainingServerSpec wanted{.models = {}, .trains = spec.trained, .policy = policy, .quota = spec.quota};
  for (const ServedModel& model : spec.served) wanted.models.push_back(model.model);
  TANDEM_ASSIGN(auto server, TrainingServer::Start(context, wanted));
  return std::unique_ptr<PolicySide>(new PolicySide(context, spec, std::move(server)));
}

Status PolicySide::RunQueueCounted() const {
  TANDEM_TRY(RunQueueWatch::Of(server_->pid()));
  return {};
}

Result<PolicySide::Served> PolicySide::Serve(const Turn& turn) const {
  if (turn.train) TANDEM_TRY(server_->Resume());
  Served served;
  TANDEM_ASSIGN(const TrainingMarks before, server_->Look());
  TANDEM_ASSIGN(served.lap.latency, Load(turn));
  TANDEM_ASSIGN(const TrainingMarks after, server_->Look());
  served.lap.span = Between(before, after);
  if (turn.probes > 0) {
    TANDEM_ASSIGN(served.waits["wait"], RunQueueWait(spec_.served.back(), turn));
    TANDEM_ASSIGN(served.waits["wait_run"], RunQueueWait(spec_.served.front(), turn));
  }
  if (turn.train) TANDEM_TRY(server_->Pause());
  return served;
}

Result<Lap> PolicySide::Train() const {
  TANDEM_TRY(server_->Resume());
  TANDEM_ASSIGN(const TrainingMarks before, server_->Look());
  std::this_thread::sleep_for(spec_.turn / 2);
  TANDEM_ASSIGN(const TrainingMarks after, server_->Look());
  TANDEM_TRY(server_->Pause());
  return Lap{.latency = {}, .span = Between(before, after)};
}

Result<loadgen::LatencyHistogram> PolicySide::Load(const Turn& turn) const {
  loadgen::LoadSpec load;
  load.port = server_->port();
  load.warmup = 500ms;
  load.duration = spec_.turn;
  load.seed = turn.seed;
  const ServedModel& asked = spec_.served.front();
  TANDEM_ASSIGN(auto request, server_->Request(asked));
  load.models.push_back({.model = asked.model,
                         .request = std::move(request),
                         .arrivals = loadgen::ArrivalSpec::Poisson(turn.rate),
                         .slo = {}});
  TANDEM_ASSIGN(loadgen::LoadReport report, loadgen::RunLoad(load, {.stop = context_.stop}));
  TANDEM_TRY(context_.CheckStop());
  loadgen::ModelReport& model = report.models.front();
  if (model.counts.failed + model.counts.rejected > 0 || model.latency.count() == 0) {
    return Fail(ErrorCode::kInternal, "{} of {} requests were not answered",
                model.counts.failed + model.counts.rejected, model.counts.total());
  }
  return std::move(model.latency);
}

Result<double> PolicySide::RunQueueWait(const ServedModel& model, const Turn& turn) const {
  TANDEM_ASSIGN(auto request, server_->Request(model));
  return Probe({.server = server_->pid(),
                .port = server_->port(),
                .request = std::move(request),
                .requests = turn.probes,
                .seed = turn.seed});
}

}  // namespace tandem::bench
