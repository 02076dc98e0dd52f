#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/clock.h"
#include "api/base/infer_request.h"
#include "colocation/admission.h"
#include "colocation/servable.h"

namespace tandem {

// What a finished piece of work hands back: the outputs that it named, in that order.
struct WorkResult {
  std::vector<Tensor> outputs;
  InferTiming timing;
};

// A checked request on its way to a device. Move-only; owned by the queue, then by the worker that runs it.
struct WorkItem {
  std::shared_ptr<Servable> servable;  // Shared: keeps the version alive until the answer.
  std::vector<Tensor> inputs;          // Match the servable's signature.
  std::vector<std::string> outputs;    // At least one.
  std::int64_t batch = 1;              // Elements along the batch dimension; 1 for a model without one.
  std::uint64_t priority = 0;          // Lower runs first.
  std::uint64_t number = 0;            // Of the request, in the flight recorder; 0: it is not recorded.
  std::optional<MonotonicTime> deadline;
  std::shared_ptr<CancelToken> cancel;  // Shared with the front end; never null.
  // Told, before `done` is called, of a request that is not expected in time. Owned by what `done` holds; may be null.
  std::optional<Shortfall>* shortfall = nullptr;

  // Called once: on a thread of the dispatcher, or within Submit() when the item was refused or run there.
  std::move_only_function<void(Result<WorkResult>)> done;
};

}  // namespace tandem
