#pragma once

#include <optional>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "profiler/model_statistics.h"
#include "server/metrics/request_metrics.h"

namespace tandem {

// What became of a request, for the counters and the log. `error` is null when it was answered; `deadline` the
// request's own, `now` the time of the answer.

// A call that is cancelled at its deadline has expired: gRPC ends it then, whatever the client does.
[[nodiscard]] RequestOutcome OutcomeOf(const Error* error, std::optional<MonotonicTime> deadline, MonotonicTime now);

// Exactly one verdict for each request that has a deadline: met; rejected when it was refused or dropped uncomputed;
// missed when its run ended late, was stopped at the deadline or failed. None for what the client did itself: an
// invalid request, or one that it gave up before its deadline.
[[nodiscard]] SloVerdict VerdictOf(const Error* error, std::optional<MonotonicTime> deadline, MonotonicTime now);

[[nodiscard]] FailureReason ReasonOf(const Error& error);

}  // namespace tandem
