#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "colocation/work_item.h"
#include "memory/shared_regions.h"

namespace tandem {

// What the inputs of a request may hold together in shared memory, unless somebody says otherwise.
inline constexpr std::uint64_t kMaxSharedBytes = std::uint64_t{256} << 20;

// The regions that a request's outputs go to, parallel to them; null for those that go into the answer. Shared: the
// request keeps them, whatever is unregistered or registered under their names meanwhile.
using OutputRegions = std::vector<std::shared_ptr<const SharedRegion>>;

// The one validator: checks a decoded request against the model's signature and turns it into work, inputs in the
// signature's order. Reads inputs that lie in shared memory, once their sizes are known to be right and together at
// most `max_shared_bytes`. `done` is left for the caller to set. Errors name the tensor and both sides of what does not
// fit.
[[nodiscard]] Result<WorkItem> PrepareWork(const InferRequest& request, std::shared_ptr<Servable> servable,
                                           const SharedRegions& regions, std::uint64_t max_shared_bytes,
                                           OutputRegions& output_regions);

// The level that a request waits at which asks for this one; 0: for none.
[[nodiscard]] std::uint64_t ResolvePriority(std::uint64_t asked, const BatchSettings& batching);

// The earliest deadline that the request names itself.
[[nodiscard]] std::optional<MonotonicTime> OwnDeadline(const InferRequest& request);

// The earliest of what the request says, else the model's SLO, else the server's default; none when nobody says.
[[nodiscard]] std::optional<MonotonicTime> ResolveDeadline(const InferRequest& request, const Servable& servable,
                                                           std::optional<std::chrono::microseconds> default_slo);

}  // namespace tandem
