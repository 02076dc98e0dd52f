#include "server/rest/memory_json.h"

#include <optional>
#include <string>
#include <utility>

namespace tandem::rest {
namespace {

Json::Value Bytes(std::uint64_t bytes) {
  return Json::UInt64{bytes};
}

template <typename T>
Json::Value OrNull(const std::optional<T>& value) {
  return value ? Json::Value(Json::UInt64{static_cast<std::uint64_t>(*value)}) : Json::Value();
}

Json::Value SessionJson(const MemorySession& session) {
  Json::Value json(Json::objectValue);
  json["id"] = Json::UInt64{std::to_underlying(session.id)};
  json["kind"] = std::string(MemoryKindName(session.kind));
  json["name"] = session.name;
  json["persistent_bytes"] = Bytes(session.need.persistent);
  json["ephemeral_bytes"] = Bytes(session.need.ephemeral);
  json["measured_bytes"] = OrNull(session.measured);
  return json;
}

Json::Value LaneJson(const Lane& lane) {
  Json::Value json(Json::objectValue);
  json["id"] = Json::UInt64{std::to_underlying(lane.id)};
  json["length_bytes"] = Bytes(lane.length);
  json["next_bytes"] = Bytes(lane.next);
  json["sessions"] = Json::Value(Json::arrayValue);
  for (const LaneSession& session : lane.sessions) {
    json["sessions"].append(Json::UInt64{std::to_underlying(session.id)});
  }
  return json;
}

// From one end of the memory to the other; together the budget, or what is in use when that is more.
Json::Value RegionsJson(const MemoryMap& map) {
  Json::Value json(Json::arrayValue);
  const auto add = [&json](const char* name, std::uint64_t bytes) {
    Json::Value& region = json.append(Json::Value(Json::objectValue));
    region["name"] = name;
    region["bytes"] = Bytes(bytes);
  };
  add("server", map.Persistent(MemoryKind::kServer));
  add("models", map.Persistent(MemoryKind::kModel));
  add("jobs", map.Persistent(MemoryKind::kJob));
  add("free", map.free);
  add("lanes", map.use.lanes);
  return json;
}

}  // namespace

Json::Value MemoryToJson(const MemoryMap& map) {
  Json::Value json(Json::objectValue);
  json["budget_bytes"] = Bytes(map.budget.bytes);
  json["budget_from"] = BudgetWords(map.budget);
  json["machine_bytes"] = Bytes(map.budget.there.device);
  json["limit_bytes"] = OrNull(map.budget.there.limit);
  json["persistent_bytes"] = Bytes(map.use.persistent);
  json["ephemeral_bytes"] = Bytes(map.use.lanes);
  json["free_bytes"] = Bytes(map.free);
  json["overhang_bytes"] = Bytes(map.overhang);
  json["headroom_bytes"] = Bytes(map.headroom());
  json["regions"] = RegionsJson(map);
  json["lanes"] = Json::Value(Json::arrayValue);
  for (const Lane& lane : map.lanes) json["lanes"].append(LaneJson(lane));
  json["sessions"] = Json::Value(Json::arrayValue);
  for (const MemorySession& session : map.sessions) {
    Json::Value one = SessionJson(session);
    one["stays"] = session.need.stays;
    one["lane"] = OrNull(session.lane);
    json["sessions"].append(std::move(one));
  }
  json["waiting"] = Json::Value(Json::arrayValue);
  for (const WaitingSession& waiting : map.waiting) {
    Json::Value one = SessionJson(waiting.session);
    one.removeMember("measured_bytes");
    one["overtaken"] = waiting.overtaken;
    one["reason"] = waiting.reason;
    json["waiting"].append(std::move(one));
  }
  json["kept_for"] = OrNull(map.kept_for);
  return json;
}

}  // namespace tandem::rest
