#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "colocation/work_item.h"
#include "memory/shared_regions.h"

namespace tandem {

// The one validator: checks a decoded request against the model's signature and turns it into work, inputs in the
// signature's order. Reads inputs that lie in shared memory. `done` is left for the caller to set. Errors name the
// tensor and both sides of what does not fit.
[[nodiscard]] Result<WorkItem> PrepareWork(const InferRequest& request, std::shared_ptr<Servable> servable,
                                           const SharedRegions& regions);

// The earliest of what the request says, else the model's SLO, else the server's default; none when nobody says.
[[nodiscard]] std::optional<MonotonicTime> ResolveDeadline(const InferRequest& request, const Servable& servable,
                                                           std::optional<std::chrono::microseconds> default_slo);

}  // namespace tandem
