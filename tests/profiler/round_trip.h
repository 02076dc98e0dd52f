#pragma once

#include <chrono>

#include <gtest/gtest.h>

#include "api/base/clock.h"
#include "profiler/flight_events.h"

namespace tandem {

[[nodiscard]] inline MonotonicTime At(std::chrono::nanoseconds time) {
  return MonotonicTime(time);
}

// Packed and unpacked, it packs to the same; and is taken for nothing else.
template <typename Event, typename Other>
Event RoundTrip(const Event& event) {
  const FlightRecord record = event.Pack();
  EXPECT_FALSE(As<Other>(record));
  const auto back = As<Event>(record);
  EXPECT_TRUE(back);
  EXPECT_EQ(back->Pack(), record);
  return back.value_or(Event{});
}

}  // namespace tandem
