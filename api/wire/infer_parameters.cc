#include "api/wire/infer_parameters.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem {
namespace {

using std::chrono::microseconds;

// A timeout beyond this is as good as this one, and deadlines in nanoseconds stay far from overflow.
constexpr microseconds kLongestTimeout = std::chrono::hours(24 * 365);
constexpr double kLongestSloMs = 24.0 * 3600 * 1000;
constexpr std::uint64_t kMaxClasses = std::uint64_t{1} << 31;

struct ValueText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(std::uint64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return Format("{}", v); }
  std::string operator()(std::string_view v) const { return Format("\"{}\"", Excerpt(v)); }
};

std::unexpected<Error> Refuse(std::string_view key, const ParameterValue& value, std::string_view expected) {
  return Invalid("parameter '{}' is {} but must be {}", Excerpt(key), ParameterText(value), expected);
}

Result<std::uint64_t> Unsigned(std::string_view key, const ParameterValue& value) {
  if (const auto* v = std::get_if<std::uint64_t>(&value)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&value); v != nullptr && *v >= 0) return static_cast<std::uint64_t>(*v);
  return Refuse(key, value, "an integer of 0 or more");
}

Result<bool> Boolean(std::string_view key, const ParameterValue& value) {
  if (const auto* v = std::get_if<bool>(&value)) return *v;
  return Refuse(key, value, "true or false");
}

Result<std::string> Text(std::string_view key, const ParameterValue& value) {
  if (const auto* v = std::get_if<std::string_view>(&value)) return std::string(*v);
  return Refuse(key, value, "a string");
}

Status ApplyTimeout(std::string_view key, const ParameterValue& value, InferRequest& request) {
  TANDEM_ASSIGN(const std::uint64_t given, Unsigned(key, value));
  const auto longest = static_cast<std::uint64_t>(kLongestTimeout.count());
  // Zero is the protocol's "no timeout".
  if (given > 0) request.timeout = microseconds(static_cast<std::int64_t>(std::min(given, longest)));
  return {};
}

Status ApplySlo(std::string_view key, const ParameterValue& value, InferRequest& request) {
  double ms = 0;
  if (const auto* d = std::get_if<double>(&value)) {
    ms = *d;
  } else if (const auto* i = std::get_if<std::int64_t>(&value)) {
    ms = static_cast<double>(*i);
  } else if (const auto* u = std::get_if<std::uint64_t>(&value)) {
    ms = static_cast<double>(*u);
  }
  if (!(ms > 0 && ms <= kLongestSloMs)) return Refuse(key, value, "a number of milliseconds above 0, at most a day");
  request.slo = microseconds(static_cast<std::int64_t>(std::ceil(ms * 1000)));
  return {};
}

Status CheckSequenceId(std::string_view key, const ParameterValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  if (std::holds_alternative<bool>(value) || std::holds_alternative<double>(value) || (number && *number < 0)) {
    return Refuse(key, value, "an integer of 0 or more, or a string");
  }
  return {};
}

// True when the key was one of the shared-memory ones.
Result<bool> ApplySharedMemory(std::string_view key, const ParameterValue& value, TensorParameters& tensor) {
  if (key == "shared_memory_region") {
    TANDEM_ASSIGN(tensor.shared_region, Text(key, value));
  } else if (key == "shared_memory_offset") {
    TANDEM_ASSIGN(tensor.shared_offset, Unsigned(key, value));
  } else if (key == "shared_memory_byte_size") {
    TANDEM_ASSIGN(tensor.shared_byte_size, Unsigned(key, value));
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string ParameterText(const ParameterValue& value) {
  return std::visit(ValueText{}, value);
}

Status ApplyRequestParameter(std::string_view key, const ParameterValue& value, FrontEnd front_end,
                             InferRequest& request) {
  if (key == "priority") {
    TANDEM_ASSIGN(request.priority, Unsigned(key, value));
  } else if (key == "timeout") {
    return ApplyTimeout(key, value, request);
  } else if (key == "slo_ms") {
    return ApplySlo(key, value, request);
  } else if (key == "binary_data_output") {
    TANDEM_ASSIGN(request.binary_output, Boolean(key, value));
  } else if (key == "sequence_id") {
    return CheckSequenceId(key, value);
  } else if (key == "sequence_start" || key == "sequence_end") {
    TANDEM_TRY(Boolean(key, value));
  } else if (key.starts_with("triton_")) {
    if (front_end == FrontEnd::kRest || key != "triton_enable_empty_final_response") {
      return Invalid("parameter '{}' is reserved: keys that begin with 'triton_' are not accepted", Excerpt(key));
    }
    TANDEM_TRY(Boolean(key, value));
  }
  return {};
}

Status ApplyInputParameter(std::string_view key, const ParameterValue& value, TensorParameters& input) {
  if (key == "binary_data_size") {
    TANDEM_ASSIGN(input.binary_data_size, Unsigned(key, value));
    return {};
  }
  TANDEM_TRY(ApplySharedMemory(key, value, input));
  return {};
}

Status ApplyOutputParameter(std::string_view key, const ParameterValue& value, TensorParameters& output) {
  if (key == "binary_data") {
    TANDEM_ASSIGN(output.binary_data, Boolean(key, value));
    return {};
  }
  if (key == "classification") {
    TANDEM_ASSIGN(const std::uint64_t classes, Unsigned(key, value));
    if (classes > kMaxClasses) return Refuse(key, value, "at most 2^31");
    output.classification = static_cast<std::uint32_t>(classes);
    return {};
  }
  TANDEM_TRY(ApplySharedMemory(key, value, output));
  return {};
}

Result<std::optional<SharedRange>> TakeSharedRange(TensorParameters& parameters) {
  if (!parameters.shared_region) {
    if (parameters.shared_offset || parameters.shared_byte_size) {
      return Invalid("parameter '{}' is given without 'shared_memory_region'",
                     parameters.shared_offset ? "shared_memory_offset" : "shared_memory_byte_size");
    }
    return std::nullopt;
  }
  if (parameters.shared_region->empty()) return Invalid("parameter 'shared_memory_region' is an empty string");
  if (!parameters.shared_byte_size) {
    return Invalid("parameter 'shared_memory_region' is given without 'shared_memory_byte_size'");
  }
  return SharedRange{.region = *std::move(parameters.shared_region),
                     .offset = parameters.shared_offset.value_or(0),
                     .byte_size = *parameters.shared_byte_size};
}

Status FinishOutput(TensorParameters parameters, RequestedOutput& output) {
  TANDEM_ASSIGN(output.shared, TakeSharedRange(parameters));
  output.binary = parameters.binary_data;
  output.classification = parameters.classification;
  if (output.shared && output.classification > 0) {
    return Invalid("parameter 'classification' cannot be combined with 'shared_memory_region'");
  }
  return {};
}

Status CheckInputData(const Tensor& tensor) {
  if (tensor.name.size() <= kExcerptBytes) return CheckTensorData(tensor);
  Tensor shown = tensor;
  shown.name = Excerpt(tensor.name);
  return CheckTensorData(shown);
}

}  // namespace tandem
