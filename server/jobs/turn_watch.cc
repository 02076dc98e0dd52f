#include "server/jobs/turn_watch.h"

#include <utility>

namespace tandem::jobs {

TurnWatch::Found TurnWatch::Turn(MonotonicTime now, WallTime wall, bool close) {
  const auto before = std::exchange(last_, now);
  const WallTime wall_before = std::exchange(last_wall_, wall);
  // Over a long time the time of day may well be corrected bit by bit.
  if (!before || !close) return {};
  const std::chrono::nanoseconds passed = now - *before;
  const std::chrono::nanoseconds stepped = (wall - wall_before) - passed;
  Found found;
  if (passed >= kFarApart) found.stood_still = passed;
  if (std::chrono::abs(stepped) >= kStep) found.stepped = stepped;
  return found;
}

}  // namespace tandem::jobs
