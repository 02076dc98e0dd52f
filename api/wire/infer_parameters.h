#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/base/infer_request.h"
#include "api/base/result.h"

namespace tandem {

// The value of a parameter of a request, an input or an output, whichever form it came in. Integers above 2^63-1 are
// std::uint64_t, all others std::int64_t. The text is borrowed from the message.
using ParameterValue = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>;

// For messages: the value, a string in quotes and cut short.
[[nodiscard]] std::string ParameterText(const ParameterValue& value);

// REST refuses every key that begins with "triton_"; gRPC takes the one that stream clients send.
enum class FrontEnd : std::uint8_t { kRest, kGrpc };

// Sets what the parameter says. Keys without a meaning to us are ignored. Errors name the key and the value.
[[nodiscard]] Status ApplyRequestParameter(std::string_view key, const ParameterValue& value, FrontEnd front_end,
                                           InferRequest& request);

// Bounds on what one request may name.
inline constexpr std::size_t kMaxTensors = 1024;
inline constexpr std::size_t kMaxNameBytes = 1024;

// What the parameters of one input or requested output say, before they are checked against one another.
struct TensorParameters {
  std::optional<std::uint64_t> binary_data_size;
  std::optional<bool> binary_data;
  std::uint32_t classification = 0;
  std::optional<std::string> shared_region;
  std::optional<std::uint64_t> shared_offset;
  std::optional<std::uint64_t> shared_byte_size;
};

[[nodiscard]] Status ApplyInputParameter(std::string_view key, const ParameterValue& value, TensorParameters& input);
[[nodiscard]] Status ApplyOutputParameter(std::string_view key, const ParameterValue& value, TensorParameters& output);

// The range in shared memory, if any; an error for one that is only half described.
[[nodiscard]] Result<std::optional<SharedRange>> TakeSharedRange(TensorParameters& parameters);

// Moves an output's parameters to where they belong; an error for combinations that have no meaning.
[[nodiscard]] Status FinishOutput(TensorParameters parameters, RequestedOutput& output);

// CheckTensorData, with a long name cut short in the message.
[[nodiscard]] Status CheckInputData(const Tensor& tensor);

}  // namespace tandem
