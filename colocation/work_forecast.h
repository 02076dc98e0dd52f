#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

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

// Until one of several workers gets to what comes after `ahead`, which they share; `rests` is what each of them still
// has to do, 0 of those that are free. Not empty; is sorted.
[[nodiscard]] std::chrono::nanoseconds UntilTurn(std::chrono::nanoseconds ahead,
                                                 std::span<std::chrono::nanoseconds> rests);

}  // namespace tandem
