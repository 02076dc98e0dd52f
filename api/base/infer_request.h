#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/clock.h"
#include "api/base/tensor.h"

namespace tandem {

// A place in a registered shared-memory region.
struct SharedRange {
  std::string region;
  std::uint64_t offset = 0;
  std::uint64_t byte_size = 0;
};

// An input as it came: its data inline, or still to be looked up in shared memory.
struct InferInput {
  Tensor tensor;
  std::optional<SharedRange> shared;
};

// An output that the caller asked for.
struct RequestedOutput {
  std::string name;
  std::uint32_t classification = 0;  // > 0: the top N classes as BYTES instead of the tensor.
  std::optional<bool> binary;        // REST only; unset: InferRequest::binary_output.
  std::optional<SharedRange> shared;
};

// One inference request, whichever front end it came through. Decoded by api/wire, checked by server/infer.
struct InferRequest {
  std::string model;
  std::string version;       // Empty: the version that the model's policy prefers.
  std::string id;            // Echoed; may be empty.
  std::uint64_t number = 0;  // That the server gave it, to be found in the flight recorder; 0: none.
  std::vector<InferInput> inputs;
  std::vector<RequestedOutput> outputs;  // Empty: all outputs.
  bool binary_output = false;            // REST only: `binary_data_output`.

  std::uint64_t priority = 0;                        // 1 is the highest; 0 the model's default.
  std::optional<std::chrono::microseconds> timeout;  // As the request says, from arrival.
  std::optional<std::chrono::microseconds> slo;      // As parameter `slo_ms` or the header says, from arrival.

  MonotonicTime arrival;
  std::optional<MonotonicTime> deadline;  // The earliest of all that was said, once resolved.

  // Shared with the front end, which cancels it when the client goes.
  std::shared_ptr<CancelToken> cancel;
};

// Where the time of a request went.
struct InferTiming {
  std::chrono::nanoseconds queue{0};
  std::chrono::nanoseconds compute_input{0};
  std::chrono::nanoseconds compute_infer{0};
  std::chrono::nanoseconds compute_output{0};
};

struct InferResponse {
  std::string model;
  std::string version;
  std::string id;
  std::vector<Tensor> outputs;  // In the order of InferRequest::outputs, or of the signature when that was empty.
  InferTiming timing;
};

}  // namespace tandem
