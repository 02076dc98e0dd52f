#include "server/trace/time_text.h"

#include "api/base/duration.h"
#include "api/base/format.h"

namespace tandem::trace {

std::string TimeText(std::chrono::nanoseconds time) {
  using namespace std::chrono_literals;
  const std::chrono::nanoseconds size = time < 0ns ? -time : time;
  if (size < 1ms) return Format("{:.0f} µs", 1000 * Ms(size));
  if (size < 100ms) return Format("{:.1f} ms", Ms(size));
  if (size < 10s) return Format("{:.0f} ms", Ms(size));
  return Format("{:.1f} s", Seconds(size));
}

std::string CountText(std::int64_t count, const char* what) {
  return Format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace tandem::trace
