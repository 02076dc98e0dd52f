#include "server/cli/simulate_report.h"

#include <algorithm>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "colocation/hold_reason.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

using simulation::ModelResult;
using simulation::SimulationResult;
using simulation::TrainerResult;

// "-" where there is nothing to divide by.
std::string RatioText(double value, double over) {
  return over > 0 ? Format("{:.3f}", value / over) : "-";
}

std::string PercentText(double value, double over) {
  return over > 0 ? Format("{:.2f} %", 100 * value / over) : "-";
}

std::string TimeText(const ModelResult& model, std::chrono::nanoseconds time) {
  return model.answered > 0 ? Format("{:.2f}", Ms(time)) : "-";
}

// The time of its iterations of that trainer alone.
double RateAlone(const CaseOutcome& outcome, std::size_t trainer) {
  return outcome.training.trainers[trainer].iterations_per_second;
}

void AddRequestRows(const CaseOutcome& outcome, const std::string& policy, const SimulationResult& result,
                    TableRows& rows) {
  for (std::size_t i = 0; i < result.models.size(); ++i) {
    const ModelResult& model = result.models[i];
    const auto& slo = outcome.simulated.scenario.models[i].slo;
    rows.push_back({policy, model.name, std::to_string(model.offered), std::to_string(model.answered),
                    std::to_string(model.rejected), std::to_string(model.unfinished), TimeText(model, model.p50),
                    TimeText(model, model.p99), RatioText(Ms(model.p99), Ms(outcome.alone.models[i].p99)),
                    slo ? Format("{:g}", Ms(*slo)) : "-",
                    PercentText(static_cast<double>(model.in_time), static_cast<double>(model.due))});
  }
}

void AddTrainingRows(const CaseOutcome& outcome, const std::string& policy, const SimulationResult& result,
                     TableRows& rows) {
  for (std::size_t i = 0; i < result.trainers.size(); ++i) {
    const TrainerResult& trainer = result.trainers[i];
    const double rate = trainer.iterations_per_second;
    const double alone = RateAlone(outcome, i);
    std::vector<std::string> row = {policy, trainer.name, Format("{:.3f}", rate), RatioText(rate, alone),
                                    RatioText(rate, alone * (1 - outcome.load()))};
    for (const auto held : trainer.held) row.push_back(PercentText(Seconds(held), Seconds(result.time)));
    row.push_back(PercentText(static_cast<double>(result.throttled_periods), static_cast<double>(result.periods)));
    rows.push_back(std::move(row));
  }
}

Json::Value ModelJson(const ModelResult& model) {
  Json::Value json;
  json["name"] = model.name;
  json["offered"] = Json::UInt64(model.offered);
  json["answered"] = Json::UInt64(model.answered);
  json["rejected"] = Json::UInt64(model.rejected);
  json["unfinished"] = Json::UInt64(model.unfinished);
  if (model.due > 0) {
    json["slo_attainment"] = static_cast<double>(model.in_time) / static_cast<double>(model.due);
  }
  if (model.answered > 0) {
    json["mean_ms"] = Ms(model.mean);
    json["p50_ms"] = Ms(model.p50);
    json["p90_ms"] = Ms(model.p90);
    json["p99_ms"] = Ms(model.p99);
    json["max_ms"] = Ms(model.max);
  }
  return json;
}

Json::Value TrainerJson(const CaseOutcome& outcome, std::size_t index, const TrainerResult& trainer) {
  Json::Value json;
  const double alone = RateAlone(outcome, index);
  json["name"] = trainer.name;
  json["iterations_per_second"] = trainer.iterations_per_second;
  if (alone > 0) json["of_alone"] = trainer.iterations_per_second / alone;
  if (alone > 0 && outcome.load() < 1) {
    json["of_what_is_left"] = trainer.iterations_per_second / (alone * (1 - outcome.load()));
  }
  for (std::size_t i = 0; i < kHoldReasons.size(); ++i) {
    json["held_seconds"][std::string(HoldReasonName(kHoldReasons[i]))] = Seconds(trainer.held[i]);
  }
  return json;
}

Json::Value ResultJson(const CaseOutcome& outcome, const SimulationResult& result) {
  Json::Value json;
  json["models"] = Json::arrayValue;
  json["trainers"] = Json::arrayValue;
  for (const ModelResult& model : result.models) json["models"].append(ModelJson(model));
  for (std::size_t i = 0; i < result.trainers.size(); ++i) {
    json["trainers"].append(TrainerJson(outcome, i, result.trainers[i]));
  }
  const double all = result.capacity * Seconds(result.time);
  json["used_by_requests"] = result.used_by_requests / all;
  json["used_by_training"] = result.used_by_training / all;
  if (result.periods > 0) {
    json["throttled_periods"] = static_cast<double>(result.throttled_periods) / static_cast<double>(result.periods);
  }
  json["events"] = Json::UInt64(result.events);
  return json;
}

}  // namespace

double CaseOutcome::load() const {
  return alone.used_by_requests / (alone.capacity * Seconds(alone.time));
}

std::string SimulationTables(const CaseOutcome& outcome) {
  std::string text;
  if (!outcome.alone.models.empty()) {
    TableRows rows = {{"policy", "model", "offered", "answered", "refused", "unfinished", "p50 ms", "p99 ms",
                       "of alone", "SLO ms", "in SLO"}};
    AddRequestRows(outcome, "alone", outcome.alone, rows);
    for (const PolicyOutcome& policy : outcome.policies) AddRequestRows(outcome, policy.policy, policy.result, rows);
    text += PlainTable(rows);
  }
  if (!outcome.training.trainers.empty()) {
    TableRows rows = {{"policy", "trainer", "iterations/s", "of alone", "of what is left"}};
    for (const HoldReason reason : kHoldReasons) rows[0].push_back(Format("held: {}", HoldReasonName(reason)));
    rows[0].emplace_back("throttled periods");
    AddTrainingRows(outcome, "alone", outcome.training, rows);
    for (const PolicyOutcome& policy : outcome.policies) AddTrainingRows(outcome, policy.policy, policy.result, rows);
    text += (text.empty() ? "" : "\n") + PlainTable(rows);
  }
  return text;
}

Json::Value SimulationJson(const SimulationFile& file, const std::vector<CaseOutcome>& outcomes) {
  Json::Value json;
  json["scenario"] = file.name;
  json["cases"] = Json::arrayValue;
  for (const CaseOutcome& outcome : outcomes) {
    Json::Value one;
    if (!outcome.simulated.name.empty()) one["name"] = outcome.simulated.name;
    one["seed"] = Json::UInt64(outcome.simulated.scenario.seed);
    one["rounds"] = outcome.simulated.rounds;
    one["seconds"] = Seconds(outcome.simulated.scenario.duration);
    one["load"] = outcome.load();
    one["requests_alone"] = ResultJson(outcome, outcome.alone);
    one["training_alone"] = ResultJson(outcome, outcome.training);
    one["policies"] = Json::arrayValue;
    for (const PolicyOutcome& policy : outcome.policies) {
      Json::Value under = ResultJson(outcome, policy.result);
      under["policy"] = policy.policy;
      one["policies"].append(std::move(under));
    }
    json["cases"].append(std::move(one));
  }
  return json;
}

}  // namespace tandem::cli
