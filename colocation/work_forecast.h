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

// How what waits is taken to be run.
struct RunsAs {
  RunWidth width = RunWidth::kAll;
  // So many of one thread run side by side: each counts as so much less of the device's time. Models that are only run
  // on all threads count as they are.
  int threads = 1;
};

// Of a request that is about to wait.
struct Forecast {
  std::chrono::nanoseconds ahead{0};  // What of the queue must be done before its own run begins.
  std::optional<RunPrediction> run;   // Its own, with those before it that it shares it with; nullopt: not known.
  WorkAmount joined;                  // What it shares it with; no part of `ahead`.
};

// What it takes until a request over `elements` of `servable` is done, when `before` stands before it in the queue.
// Waiting requests are taken to be joined as the models' configurations allow; models that are not known cost nothing.
// Same arguments, same forecast, as long as nothing new is learnt of the models.
[[nodiscard]] Forecast ForecastRequest(const Servable& servable, std::int64_t elements,
                                       std::span<const std::pair<const Servable*, WorkAmount>> before, RunsAs as = {});

// What waiting requests of one model take in the batches that will be made of them; 0 when that is not known.
[[nodiscard]] std::chrono::nanoseconds TimeOf(const Servable& servable, WorkAmount work, RunsAs as = {});

// How many runs will be made of them.
[[nodiscard]] std::int64_t RunsOf(const Servable& servable, WorkAmount work);

// A flow of the level that a request is about to wait at (colocation/fair_share.h).
struct SharedFlow {
  double weight = 1;
  std::chrono::nanoseconds behind{0};  // Its share.
  std::chrono::nanoseconds before{0};  // What of it is more urgent than the request.
  std::chrono::nanoseconds after{0};   // The rest.
};

// What of the level is done before the request has its turn, which belongs to flows[own]: the rule of the shares played
// through in some dozens of steps, fewer when there are many flows, until it comes to `enough`. Uses up the flows.
[[nodiscard]] std::chrono::nanoseconds AheadByShares(std::span<SharedFlow> flows, std::size_t own,
                                                     std::chrono::nanoseconds enough);

// Until one of several workers gets to what comes after `ahead`, which they share; `rests` is what each of them still
// has to do, 0 of those that are free. Not empty; is sorted.
[[nodiscard]] std::chrono::nanoseconds UntilTurn(std::chrono::nanoseconds ahead,
                                                 std::span<std::chrono::nanoseconds> rests);

}  // namespace tandem
