#include "server/trace/flight_copy.h"

#include <algorithm>
#include <utility>

namespace tandem::trace {
namespace {

// The oldest that was written when it happened: an arrival is written once the request is whole, which may take long.
std::optional<MonotonicTime> Since(const RecordRing& ring, const std::vector<FlightRecord>& records) {
  if (!ring.overwritten()) return std::nullopt;
  MonotonicTime oldest = MonotonicTime::max();
  for (const FlightRecord& record : records) {
    if (record.kind == static_cast<std::uint8_t>(FlightKind::kRequestArrived)) continue;
    oldest = std::min(oldest, MonotonicTime(std::chrono::nanoseconds(record.time)));
  }
  return oldest;
}

}  // namespace

std::vector<FlightRecord> ByTime(std::vector<FlightRecord> records) {
  std::ranges::stable_sort(records, {}, &FlightRecord::time);
  return records;
}

FlightCopy CopyOf(const FlightRecorder& recorder) {
  FlightCopy copy{.requests = recorder.requests().Last(),
                  .training = ByTime(recorder.training().Last()),
                  .turns = recorder.turns().Last(),
                  .names = &recorder.names(),
                  .workers = recorder.workers(),
                  .capacity = recorder.requests().capacity(),
                  .requests_since = {},
                  .training_since = {},
                  .turns_since = {}};
  copy.requests_since = Since(recorder.requests(), copy.requests);
  copy.training_since = Since(recorder.training(), copy.training);
  copy.turns_since = Since(recorder.turns(), copy.turns);
  return copy;
}

}  // namespace tandem::trace
