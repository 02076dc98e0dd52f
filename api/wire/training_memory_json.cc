#include "api/wire/training_memory_json.h"

namespace tandem {

Json::Value MemoryEstimateToJson(const MemoryEstimate& estimate) {
  const PersistentBytes& parts = estimate.persistent;
  Json::Value json;
  Json::Value& persistent = json["persistent"];
  persistent["total"] = Json::UInt64(parts.total());
  persistent["weights"] = Json::UInt64(parts.weights);
  persistent["optimizer"] = Json::UInt64(parts.optimizer);
  persistent["data"] = Json::UInt64(parts.data);
  persistent["framework"] = Json::UInt64(parts.framework);
  json["ephemeral"] = Json::UInt64(estimate.ephemeral);
  json["peak"] = estimate.peak;
  json["batch"] = Json::Int64(estimate.batch);
  if (!estimate.fit) return json;
  json["fit"]["kept"] = Json::UInt64(estimate.fit->kept);
  json["fit"]["least"] = Json::UInt64(estimate.fit->least);
  json["fit"]["slowdown"] = estimate.fit->slowdown;
  return json;
}

Json::Value JobMemoryToJson(const std::optional<MemoryEstimate>& estimate, const std::optional<MemoryUse>& measured) {
  Json::Value json;
  json["estimate"] = estimate ? MemoryEstimateToJson(*estimate) : Json::Value();
  json["measured"] = Json::Value();
  json["error"] = Json::Value();
  if (!measured) return json;
  json["measured"]["persistent"] = Json::UInt64(measured->persistent);
  json["measured"]["ephemeral"] = Json::UInt64(measured->ephemeral);
  if (!estimate) return json;
  json["error"]["persistent"] = EstimateError(estimate->persistent.total(), measured->persistent);
  json["error"]["ephemeral"] = EstimateError(estimate->ephemeral, measured->ephemeral);
  return json;
}

}  // namespace tandem
