#include "colocation/core_seats.h"

#include <span>

#include <sched.h>

#include "profiler/machine.h"

namespace tandem {

bool CoreSeats::Take(std::size_t seat) const {
  if (seat >= cores_.size()) return false;
  const cpu_set_t set = CoreSet(std::span(cores_).subspan(seat, 1));
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace tandem
