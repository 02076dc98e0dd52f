#include "profiler/turn_events.h"

#include "profiler/event_packing.h"

namespace tandem {
namespace {

using packing::At;
using packing::Begin;

}  // namespace

FlightRecord TrainerStands::Pack() const noexcept {
  FlightRecord record = Begin(*this, trainer);
  record.code = hold;
  record.count = decided_hold_heavy;
  record.name = decided_hold;
  record.values = {job, trainers.Pack(), 0, 0};
  return record;
}

TrainerStands TrainerStands::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .trainer = record.subject,
          .hold = record.code,
          .job = record.values[0],
          .trainers = TrainerCounts::Unpack(record.values[1]),
          .decided_hold = static_cast<std::uint8_t>(record.name),
          .decided_hold_heavy = static_cast<std::uint8_t>(record.count)};
}

FlightRecord TurnBegan::Pack() const noexcept {
  FlightRecord record = Begin(*this, job);
  record.values[0] = static_cast<std::int64_t>(lane);
  return record;
}

TurnBegan TurnBegan::Unpack(const FlightRecord& record) {
  return {.at = At(record.time), .job = record.subject, .lane = static_cast<std::uint64_t>(record.values[0])};
}

FlightRecord TurnEnded::Pack() const noexcept {
  FlightRecord record = Begin(*this, job);
  record.values[0] = static_cast<std::int64_t>(lane);
  record.values[1] = began.time_since_epoch().count();
  return record;
}

TurnEnded TurnEnded::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .job = record.subject,
          .lane = static_cast<std::uint64_t>(record.values[0]),
          .began = At(record.values[1])};
}

}  // namespace tandem
