#pragma once

#include <vector>

#include "profiler/op_profile.h"
#include "server/trace/trace_sources.h"

namespace tandem::trace {

// A track for each trainer with the runs of its operators, those that ended last, kMostOfAKind of all together. Runs of
// one trainer are one after the other: what a trainer tells otherwise is left out.
[[nodiscard]] TraceSource DrawOps(std::vector<RecentOps> trainers);

}  // namespace tandem::trace
