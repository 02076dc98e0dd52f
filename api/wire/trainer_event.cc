#include "api/wire/trainer_event.h"

#include <array>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>

#include <json/reader.h>
#include <json/value.h>
#include <json/writer.h>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxTrainerText = 4096;

constexpr std::array<std::pair<std::string_view, TrainerOutcome>, 4> kOutcomes = {
    {{"finished", TrainerOutcome::kFinished},
     {"stopped_early", TrainerOutcome::kStoppedEarly},
     {"interrupted", TrainerOutcome::kInterrupted},
     {"failed", TrainerOutcome::kFailed}}};

constexpr std::array<std::pair<std::string_view, ErrorCode>, 4> kCodes = {{{"invalid", ErrorCode::kInvalidArgument},
                                                                           {"unsupported", ErrorCode::kUnsupported},
                                                                           {"too_large", ErrorCode::kTooLarge},
                                                                           {"internal", ErrorCode::kInternal}}};

template <typename Table, typename Value>
std::string NameIn(const Table& table, Value value, std::string_view otherwise) {
  for (const auto& [name, known] : table) {
    if (known == value) return std::string(name);
  }
  return std::string(otherwise);
}

// The members of an event, each with its name: read and written by the same list, so that the two cannot differ.
template <typename Visit>
void ForEachMember(PlanEvent& event, Visit visit) {
  visit("first_step", event.first_step);
  visit("total_steps", event.total_steps);
  visit("examples", event.examples);
  visit("evaluation_examples", event.evaluation_examples);
  visit("parameters", event.parameters);
}

template <typename Visit>
void ForEachMember(StepEvent& event, Visit visit) {
  visit("step", event.step);
  visit("epoch", event.epoch);
  visit("loss", event.loss);
  visit("learning_rate", event.learning_rate);
}

template <typename Visit>
void ForEachMember(EvaluationEvent& event, Visit visit) {
  visit("step", event.step);
  visit("loss", event.loss);
  visit("accuracy", event.accuracy);
  visit("best", event.best);
}

template <typename Visit>
void ForEachMember(CheckpointEvent& event, Visit visit) {
  visit("step", event.step);
  visit("file", event.file);
  visit("bytes", event.bytes);
  visit("checksum", event.checksum);
  visit("problem", event.problem);
}

template <typename Visit>
void ForEachMember(SkippedEvent& event, Visit visit) {
  visit("file", event.file);
  visit("why", event.why);
}

template <typename Visit>
void ForEachMember(FitEstimate& fit, Visit visit) {
  visit("kept", fit.kept);
  visit("least", fit.least);
  visit("slowdown", fit.slowdown);
}

template <typename Visit>
void ForEachMember(EstimateEvent& event, Visit visit) {
  visit("weights", event.estimate.persistent.weights);
  visit("optimizer", event.estimate.persistent.optimizer);
  visit("data", event.estimate.persistent.data);
  visit("framework", event.estimate.persistent.framework);
  visit("ephemeral", event.estimate.ephemeral);
  visit("peak", event.estimate.peak);
  visit("batch", event.estimate.batch);
  visit("fit", event.estimate.fit);
}

template <typename Visit>
void ForEachMember(MemoryEvent& event, Visit visit) {
  visit("persistent", event.use.persistent);
  visit("ephemeral", event.use.ephemeral);
}

template <typename Visit>
void ForEachMember(EndEvent& event, Visit visit) {
  visit("outcome", event.outcome);
  visit("step", event.step);
  visit("baseline", event.baseline);
  visit("best", event.best);
  visit("code", event.error.code);
  visit("message", event.error.message);
}

constexpr std::array<const char*, 8> kKinds = {"plan",    "step",     "evaluation", "checkpoint",
                                               "skipped", "estimate", "memory",     "end"};

struct Writer {
  Json::Value& object;

  void operator()(const char* name, std::int64_t value) const { object[name] = Json::Int64(value); }
  void operator()(const char* name, std::uint64_t value) const { object[name] = Json::UInt64(value); }
  void operator()(const char* name, std::uint32_t value) const { object[name] = value; }
  void operator()(const char* name, bool value) const { object[name] = value; }
  // JSON has no others.
  void operator()(const char* name, double value) const { object[name] = std::isfinite(value) ? value : 0.0; }
  void operator()(const char* name, const std::string& value) const { object[name] = value.substr(0, kMaxTrainerText); }
  void operator()(const char* name, const std::optional<double>& value) const {
    if (value) (*this)(name, *value);
  }
  void operator()(const char* name, std::optional<FitEstimate>& value) const {
    if (value) ForEachMember(*value, Writer{object[name]});
  }
  void operator()(const char* name, TrainerOutcome value) const { object[name] = NameIn(kOutcomes, value, "failed"); }
  void operator()(const char* name, ErrorCode value) const { object[name] = NameIn(kCodes, value, "internal"); }
};

struct Reader {
  const Json::Value& object;
  bool& good;

  void operator()(const char* name, std::int64_t& value) const {
    if (Has(name, object[name].isInt64() && object[name].asInt64() >= 0)) value = object[name].asInt64();
  }
  void operator()(const char* name, std::uint64_t& value) const {
    if (Has(name, object[name].isUInt64())) value = object[name].asUInt64();
  }
  void operator()(const char* name, std::uint32_t& value) const {
    if (Has(name, object[name].isUInt())) value = object[name].asUInt();
  }
  void operator()(const char* name, bool& value) const {
    if (Has(name, object[name].isBool())) value = object[name].asBool();
  }
  void operator()(const char* name, double& value) const {
    if (Has(name, object[name].isNumeric() && std::isfinite(object[name].asDouble()))) value = object[name].asDouble();
  }
  void operator()(const char* name, std::string& value) const {
    if (Has(name, object[name].isString())) value = object[name].asString();
  }
  void operator()(const char* name, std::optional<double>& value) const {
    if (object.isMember(name)) (*this)(name, value.emplace());
  }
  void operator()(const char* name, std::optional<FitEstimate>& value) const {
    if (object.isMember(name) && Has(name, object[name].isObject())) {
      ForEachMember(value.emplace(), Reader{object[name], good});
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void operator()(const char* name, Enum& value) const {
    if (!Has(name, object[name].isString())) return;
    if constexpr (std::is_same_v<Enum, TrainerOutcome>) {
      Choose(name, kOutcomes, value);
    } else {
      Choose(name, kCodes, value);
    }
  }

 private:
  [[nodiscard]] bool Has(const char* name, bool fits) const {
    good &= object.isMember(name) && fits;
    return good;
  }
  template <typename Table, typename Enum>
  void Choose(const char* name, const Table& table, Enum& value) const {
    for (const auto& [text, known] : table) {
      if (object[name].asString() != text) continue;
      value = known;
      return;
    }
    good = false;
  }
};

template <typename Event>
std::optional<TrainerEvent> ReadEvent(const Json::Value& object) {
  Event event;
  bool good = true;
  ForEachMember(event, Reader{object, good});
  if (!good) return std::nullopt;
  return event;
}

template <std::size_t... kIndex>
std::optional<TrainerEvent> ReadKind(const Json::Value& object, std::index_sequence<kIndex...>) {
  std::optional<TrainerEvent> event;
  const auto attempt = [&]<std::size_t kOne>() {
    if (object["event"].asString() == kKinds[kOne]) {
      event = ReadEvent<std::variant_alternative_t<kOne, TrainerEvent>>(object);
    }
  };
  (attempt.template operator()<kIndex>(), ...);
  return event;
}

}  // namespace

std::string ToLine(const TrainerEvent& event) {
  Json::Value object;
  object["event"] = kKinds[event.index()];
  std::visit([&](auto copy) { ForEachMember(copy, Writer{object}); }, event);
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "";
  return Json::writeString(builder, object);
}

Result<TrainerEvent> ParseTrainerLine(std::string_view line) {
  if (line.size() > kMaxTrainerLine) return Invalid("a line of {} bytes", line.size());
  TANDEM_TRY(CheckJson(line));
  const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
  Json::Value object;
  if (!reader->parse(line.data(), line.data() + line.size(), &object, nullptr) || !object.isObject() ||
      !object["event"].isString()) {
    return Invalid("no event: {}", Excerpt(line));
  }
  if (const auto event = ReadKind(object, std::make_index_sequence<std::variant_size_v<TrainerEvent>>())) return *event;
  return Invalid("no event: {}", Excerpt(line));
}

}  // namespace tandem
