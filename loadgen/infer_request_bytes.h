#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "loadgen/http_request.h"

namespace tandem::loadgen {

struct RandomInputOptions {
  std::uint64_t seed = 1;
  std::int64_t batch = 1;            // For a variable first dimension.
  std::int64_t variable_size = 1;    // For every other variable dimension.
  std::int64_t max_bytes = 1 << 30;  // Of one tensor.
};

// Inputs that fit the signature, the same for the same seed: floats in [0,1), half-precision floats in [1,2), integers
// 0 to 9, short words. Optional inputs are left out.
[[nodiscard]] Result<std::vector<Tensor>> RandomInputs(const ModelSignature& signature,
                                                       const RandomInputOptions& options);

enum class InferForm : std::uint8_t { kJson, kBinary };

struct InferRequestOptions {
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string model;
  std::string version;  // Empty: the server's choice.
  InferForm form = InferForm::kBinary;
  bool binary_output = true;                                 // Ask for outputs in binary form.
  std::vector<std::string> outputs;                          // Empty: all.
  std::optional<std::uint32_t> priority;                     // Request parameter `priority`.
  std::vector<std::pair<std::string, std::string>> headers;  // Sent besides those that the request needs.
};

// The bytes of POST /v2/models/M/infer. In binary form the tensors are not copied. FP16 and BF16 inputs, and BYTES that
// are not UTF-8, have no JSON form: kInvalidArgument.
[[nodiscard]] Result<HttpRequest> BuildInferRequest(const InferRequestOptions& options,
                                                    const std::vector<Tensor>& inputs);

// A request without a body, for health and metadata calls.
[[nodiscard]] HttpRequest BuildGet(const std::string& host, int port, const std::string& path);

}  // namespace tandem::loadgen
