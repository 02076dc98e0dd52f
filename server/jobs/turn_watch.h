#pragma once

#include <chrono>
#include <optional>

#include "api/base/clock.h"

namespace tandem::jobs {

// Finds what is worth a line in the log between two turns that were to follow one another closely: that everything
// stood still, and that somebody has set the time of day. Pure: times are told. One thread.
class TurnWatch {
 public:
  // Turns are less far apart than this as long as all is well.
  static constexpr std::chrono::seconds kFarApart{5};
  // The time of day drifts by less between two turns.
  static constexpr std::chrono::seconds kStep{1};

  struct Found {
    std::optional<std::chrono::nanoseconds> stood_still;  // For so long.
    std::optional<std::chrono::nanoseconds> stepped;      // So far the time of day went beside the other; may be back.
  };

  // A turn begins. `close`: it was to follow the last one closely.
  [[nodiscard]] Found Turn(MonotonicTime now, WallTime wall, bool close);

 private:
  std::optional<MonotonicTime> last_;
  WallTime last_wall_;
};

}  // namespace tandem::jobs
