#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "colocation/fair_share.h"
#include "colocation/servable.h"
#include "colocation/waiting_work.h"
#include "profiler/latency_model.h"

namespace tandem {

// From the end of a run to its answer's being sent, as far as a time of `left` has room for it at all.
[[nodiscard]] inline std::chrono::nanoseconds AnswerMargin(std::chrono::nanoseconds left) {
  return std::min<std::chrono::nanoseconds>(std::chrono::microseconds(500), left / 4);
}

// Of a request that is about to wait.
struct Forecast {
  std::chrono::nanoseconds ahead{0};  // What of the queue must be done before its own run begins.
  std::optional<RunPrediction> run;   // Its own, with those before it that it shares it with; nullopt: not known.
};

// What it takes until a request over `elements` of `servable` is done, when `before` stands before it in the queue.
// Waiting requests are taken to be joined as the models' configurations allow; models that are not known cost nothing.
// Same arguments, same forecast, as long as nothing new is learnt of the models.
[[nodiscard]] Forecast ForecastRequest(const Servable& servable, std::int64_t elements,
                                       std::span<const std::pair<const Servable*, WorkAmount>> before);

// What waiting requests of one model take in the batches that will be made of them; 0 when that is not known.
[[nodiscard]] std::chrono::nanoseconds TimeOf(const Servable& servable, WorkAmount work);
// One of these batches.
[[nodiscard]] std::chrono::nanoseconds TimeOfBatch(const Servable& servable, WorkAmount work);

// Requests that stand behind a new one in the queue, but may go before it for their share (colocation/fair_share.h).
struct LaterFlow {
  std::chrono::nanoseconds behind{0};  // Its share.
  double share = 0;                    // Of the device's time.
  std::chrono::nanoseconds work{0};    // All that waits.
  std::chrono::nanoseconds batch{0};   // The first run of it.
};

// What comes before a request when `ahead` stands before it and the others have their shares meanwhile. Pure.
[[nodiscard]] std::chrono::nanoseconds AheadWithShares(std::chrono::nanoseconds ahead,
                                                       std::span<const LaterFlow> later);

// The request's own flow.
struct OwnFlow {
  std::chrono::nanoseconds behind{0};
  double share = 1;
  std::chrono::nanoseconds before{0};  // What of it stands before the request.
};

// When its own share brings a request its turn, whatever stands before it in the queue: no later than that, once what
// is of more urgent levels is done. Pure.
[[nodiscard]] std::chrono::nanoseconds AheadByOwnShare(const OwnFlow& own, std::span<const LaterFlow> others);

// Until one of several workers gets to what comes after `ahead`, which they share; `rests` is what each of them still
// has to do, 0 of those that are free. Not empty; is sorted.
[[nodiscard]] std::chrono::nanoseconds UntilTurn(std::chrono::nanoseconds ahead,
                                                 std::span<std::chrono::nanoseconds> rests);

}  // namespace tandem
