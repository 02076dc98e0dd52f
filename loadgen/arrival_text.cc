#include "loadgen/arrival_text.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "api/wire/json_text.h"
#include "loadgen/number_text.h"

namespace tandem::loadgen {
namespace {

constexpr std::array kKinds{ArrivalKind::kPoisson, ArrivalKind::kConstant, ArrivalKind::kClosed,  ArrivalKind::kBursty,
                            ArrivalKind::kRamp,    ArrivalKind::kSteps,    ArrivalKind::kDiurnal, ArrivalKind::kTrace};

// One `name=number` of a text, and where the number goes.
struct Field {
  std::string_view name;
  double& value;
  bool required = true;
  bool given = false;
};

// Cuts off what stands before the separator, and the separator; all of it where there is none.
std::string_view Take(std::string_view& rest, char separator) {
  const std::string_view taken = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(rest.size(), taken.size() + 1));
  return taken;
}

template <typename Items>
std::string List(const Items& items, std::string_view (*name)(const typename Items::value_type&)) {
  std::string text;
  for (const auto& item : items) text.append(text.empty() ? "" : ", ").append(name(item));
  return text;
}

Status ReadFields(ArrivalKind kind, std::string_view text, std::span<Field> fields) {
  const std::string_view kind_name = ArrivalKindName(kind);
  while (!text.empty()) {
    const bool more = text.contains(',');
    std::string_view number = Take(text, ',');
    if (more && text.empty()) return Invalid("{} arrivals end with a comma", kind_name);
    const bool has_value = number.contains('=');
    const std::string_view name = Take(number, '=');
    const auto field = std::ranges::find(fields, name, &Field::name);
    if (field == fields.end()) {
      return Invalid("{} arrivals have no field '{}': there are {}", kind_name, Excerpt(name),
                     List(fields, [](const Field& known) { return known.name; }));
    }
    if (field->given) return Invalid("field '{}' of {} arrivals is given twice", name, kind_name);
    const auto value = ParseNumber(number);
    if (!has_value || !value) {
      return Invalid("field '{}' of {} arrivals must be a number, got '{}'", name, kind_name, Excerpt(number));
    }
    field->value = *value;
    field->given = true;
  }
  for (const Field& field : fields) {
    if (field.required && !field.given) return Invalid("{} arrivals need the field '{}'", kind_name, field.name);
  }
  return {};
}

Status ReadRamp(std::string_view text, RampRate& ramp) {
  double over_s = 0;
  std::array fields{Field{"from", ramp.from}, Field{"to", ramp.to}, Field{"over_s", over_s, false}};
  TANDEM_TRY(ReadFields(ArrivalKind::kRamp, text, fields));
  if (fields[2].given) ramp.over_s = over_s;
  return {};
}

Status ReadSteps(std::string_view text, std::vector<RateStep>& steps) {
  for (bool more = true; more;) {
    if (steps.size() == kMaxSteps) return Invalid("steps arrivals must have at most {} steps", kMaxSteps);
    more = text.contains(',');
    const std::string_view step = Take(text, ',');
    std::string_view rest = step;
    const auto rate = ParseNumber(Take(rest, 'x'));
    const auto seconds = ParseNumber(rest);
    if (!rate || !seconds) {
      return Invalid("step {} of steps arrivals must be a rate, 'x' and seconds, as in 10x5, got '{}'",
                     steps.size() + 1, Excerpt(step));
    }
    steps.push_back({.rate = *rate, .seconds = *seconds});
  }
  return {};
}

Status ReadParameters(std::string_view text, ArrivalSpec& spec) {
  switch (spec.kind) {
    case ArrivalKind::kBursty: {
      BurstyRate& bursty = spec.bursty;
      std::array fields{Field{"on", bursty.on}, Field{"off", bursty.off}, Field{"on_s", bursty.on_s},
                        Field{"off_s", bursty.off_s}};
      return ReadFields(spec.kind, text, fields);
    }
    case ArrivalKind::kRamp: return ReadRamp(text, spec.ramp);
    case ArrivalKind::kSteps: return ReadSteps(text, spec.steps);
    case ArrivalKind::kDiurnal: {
      DiurnalRate& diurnal = spec.diurnal;
      std::array fields{Field{"mean", diurnal.mean}, Field{"swing", diurnal.swing},
                        Field{"period_s", diurnal.period_s}};
      return ReadFields(spec.kind, text, fields);
    }
    case ArrivalKind::kTrace:
      if (text.empty()) return Invalid("trace arrivals need a file, as in trace:day.csv");
      spec.trace_file = text;
      return {};
    default: return {};
  }
}

// The kinds whose number is an argument of its own.
Status TakeDefaults(const ArrivalDefaults& defaults, ArrivalSpec& spec) {
  const std::string_view kind_name = ArrivalKindName(spec.kind);
  if (spec.kind == ArrivalKind::kClosed) {
    if (!defaults.users) return Invalid("{} arrivals need a number of users", kind_name);
    spec.users = *defaults.users;
    return {};
  }
  if (!defaults.rate) return Invalid("{} arrivals need a rate", kind_name);
  spec.rate = *defaults.rate;
  return {};
}

}  // namespace

Result<ArrivalSpec> ParseArrivals(std::string_view text, const ArrivalDefaults& defaults) {
  const bool has_parameters = text.contains(':');
  std::string_view parameters = text;
  const std::string_view kind_name = Take(parameters, ':');
  const auto kind = std::ranges::find(kKinds, kind_name, ArrivalKindName);
  if (kind == kKinds.end()) {
    return Invalid("arrivals '{}' are not known: there are {}", Excerpt(kind_name),
                   List(kKinds, [](const ArrivalKind& known) { return ArrivalKindName(known); }));
  }
  ArrivalSpec spec{.kind = *kind};
  const bool plain = *kind == ArrivalKind::kPoisson || *kind == ArrivalKind::kConstant || *kind == ArrivalKind::kClosed;
  if (plain) {
    if (has_parameters) return Invalid("{} arrivals have no fields, got '{}'", kind_name, Excerpt(parameters));
    TANDEM_TRY(TakeDefaults(defaults, spec));
  } else {
    TANDEM_TRY(ReadParameters(parameters, spec));
  }
  TANDEM_TRY(CheckArrivals(spec));
  return spec;
}

}  // namespace tandem::loadgen
