#pragma once

#include <chrono>
#include <optional>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "profiler/model_statistics.h"
#include "profiler/training_toll.h"
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

// How far a request was from being in time.
struct Lateness {
  std::chrono::nanoseconds late{0};      // After its deadline, or that it would have been.
  std::chrono::nanoseconds added{0};     // By training, at most.
  std::chrono::nanoseconds doubtful{0};  // Of that, what was judged by times that may have changed.
};

// Of a request that had its own way through the queue: `needed` is what it still needed when it was answered, as one
// does that was dropped uncomputed; `added` what training added to all runs since its arrival.
[[nodiscard]] Lateness LatenessOf(MonotonicTime arrival, MonotonicTime deadline, MonotonicTime now,
                                  std::chrono::nanoseconds needed, TollSum added);

// Training is to blame when without it the request would have been in time; unknown is the cause when that depends on
// what is doubtful.
[[nodiscard]] MissCause CauseOf(SloVerdict verdict, const Lateness& lateness);

[[nodiscard]] FailureReason ReasonOf(const Error& error);

}  // namespace tandem
