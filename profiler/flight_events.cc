#include "profiler/flight_events.h"

#include <algorithm>
#include <cstring>

#include "profiler/event_packing.h"

namespace tandem {
namespace {

using std::chrono::nanoseconds;

using packing::At;
using packing::AtIfAny;
using packing::Begin;
using packing::Number;
using packing::Time;

// How many requests a run had, and how wide it was, in one value.
constexpr std::int64_t kNarrow = std::int64_t{1} << 62;
constexpr std::int64_t kExclusive = std::int64_t{1} << 61;
constexpr std::int64_t kRequests = kExclusive - 1;

template <typename Event>
std::int64_t RequestsAndWidth(const Event& event) {
  return (event.requests & kRequests) | (event.narrow ? kNarrow : 0) | (event.exclusive ? kExclusive : 0);
}

std::uint16_t Clipped(std::int64_t number) {
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::uint16_t>::max()));
}

std::uint8_t CodeOf(const std::optional<ErrorCode>& error) {
  return static_cast<std::uint8_t>(error ? static_cast<int>(*error) + 1 : 0);
}

std::optional<ErrorCode> ErrorOf(std::uint8_t code) {
  if (code == 0) return std::nullopt;
  return static_cast<ErrorCode>(code - 1);
}

}  // namespace

std::string RequestName(std::uint64_t number) {
  return "r-" + std::to_string(number);
}

FlightRecord RequestArrived::Pack() const noexcept {
  FlightRecord record = Begin(*this, request);
  record.name = model;
  record.code = waits_for_company ? 1 : 0;
  record.count = id.size;
  record.values[0] = static_cast<std::int64_t>(id.hash);
  static_assert(ClientId::kShown == 3 * sizeof(std::int64_t));
  std::memcpy(&record.values[1], id.text.data(), ClientId::kShown);
  return record;
}

RequestArrived RequestArrived::Unpack(const FlightRecord& record) {
  RequestArrived event{.at = At(record.time),
                       .request = record.subject,
                       .model = record.name,
                       .waits_for_company = record.code != 0,
                       .id = {.hash = static_cast<std::uint64_t>(record.values[0]), .size = record.count}};
  std::memcpy(event.id.text.data(), &record.values[1], ClientId::kShown);
  return event;
}

FlightRecord RequestAdmission::Pack() const noexcept {
  FlightRecord record = Begin(*this, request);
  record.code = static_cast<std::uint8_t>(verdict);
  record.name = static_cast<std::uint32_t>(weight);
  record.count = Clipped(elements);
  record.values = {Number(left), ahead.count(), Number(run), waiting};
  return record;
}

RequestAdmission RequestAdmission::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .request = record.subject,
          .verdict = static_cast<Admitted>(record.code),
          .left = Time(record.values[0]),
          .ahead = nanoseconds(record.values[1]),
          .run = Time(record.values[2]),
          .weight = static_cast<RunWeight>(record.name),
          .waiting = record.values[3],
          .elements = record.count};
}

FlightRecord RequestJoined::Pack() const noexcept {
  FlightRecord record = Begin(*this, request);
  record.values[0] = static_cast<std::int64_t>(batch);
  return record;
}

RequestJoined RequestJoined::Unpack(const FlightRecord& record) {
  return {.at = At(record.time), .request = record.subject, .batch = static_cast<std::uint64_t>(record.values[0])};
}

FlightRecord RequestAnswered::Pack() const noexcept {
  FlightRecord record = Begin(*this, request);
  record.code = CodeOf(error);
  record.count = cause;
  record.values = {outcome, slo, Number(deadline), Number(added)};
  return record;
}

RequestAnswered RequestAnswered::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .request = record.subject,
          .outcome = static_cast<std::uint8_t>(record.values[0]),
          .slo = static_cast<std::uint8_t>(record.values[1]),
          .cause = static_cast<std::uint8_t>(record.count),
          .error = ErrorOf(record.code),
          .deadline = AtIfAny(record.values[2]),
          .added = Time(record.values[3])};
}

FlightRecord BatchBegan::Pack() const noexcept {
  FlightRecord record = Begin(*this, batch);
  record.name = model;
  record.count = worker;
  record.values = {version, elements, RequestsAndWidth(*this), Number(expected)};
  return record;
}

BatchBegan BatchBegan::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .batch = record.subject,
          .model = record.name,
          .version = record.values[0],
          .elements = record.values[1],
          .requests = record.values[2] & kRequests,
          .worker = record.count,
          .narrow = (record.values[2] & kNarrow) != 0,
          .exclusive = (record.values[2] & kExclusive) != 0,
          .expected = Time(record.values[3])};
}

FlightRecord BatchEnded::Pack() const noexcept {
  FlightRecord record = Begin(*this, batch);
  record.code = CodeOf(error);
  record.name = model;
  record.count = worker;
  record.values = {version, elements, RequestsAndWidth(*this), Number(began)};
  return record;
}

BatchEnded BatchEnded::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .batch = record.subject,
          .error = ErrorOf(record.code),
          .model = record.name,
          .version = record.values[0],
          .elements = record.values[1],
          .requests = record.values[2] & kRequests,
          .worker = record.count,
          .narrow = (record.values[2] & kNarrow) != 0,
          .exclusive = (record.values[2] & kExclusive) != 0,
          .began = AtIfAny(record.values[3])};
}

FlightRecord TrainingDecision::Pack() const noexcept {
  FlightRecord record = Begin(*this, 0);
  record.code = hold;
  record.count = hold_heavy;
  record.name = learning ? 1 : 0;
  record.values = {requests, trainers.Pack(), Number(quota_left), Number(until_refill)};
  return record;
}

TrainingDecision TrainingDecision::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .hold = record.code,
          .hold_heavy = static_cast<std::uint8_t>(record.count),
          .learning = record.name != 0,
          .requests = record.values[0],
          .trainers = TrainerCounts::Unpack(record.values[1]),
          .quota_left = Time(record.values[2]),
          .until_refill = Time(record.values[3])};
}

FlightRecord TrainerBegan::Pack() const noexcept {
  FlightRecord record = Begin(*this, trainer);
  record.code = hold;
  record.count = hold_heavy;
  record.values = {threads, trainers.Pack(), job, 0};
  return record;
}

TrainerBegan TrainerBegan::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .trainer = record.subject,
          .threads = record.values[0],
          .trainers = TrainerCounts::Unpack(record.values[1]),
          .job = record.values[2],
          .hold = record.code,
          .hold_heavy = static_cast<std::uint8_t>(record.count)};
}

FlightRecord TrainerEnded::Pack() const noexcept {
  FlightRecord record = Begin(*this, trainer);
  record.code = hold;
  record.count = hold_heavy;
  record.values[0] = trainers.Pack();
  return record;
}

TrainerEnded TrainerEnded::Unpack(const FlightRecord& record) {
  return {.at = At(record.time),
          .trainer = record.subject,
          .trainers = TrainerCounts::Unpack(record.values[0]),
          .hold = record.code,
          .hold_heavy = static_cast<std::uint8_t>(record.count)};
}

FlightRecord TrainerHeld::Pack() const noexcept {
  FlightRecord record = Begin(*this, trainer);
  record.code = hold;
  record.values[0] = job;
  return record;
}

TrainerHeld TrainerHeld::Unpack(const FlightRecord& record) {
  return {.at = At(record.time), .trainer = record.subject, .hold = record.code, .job = record.values[0]};
}

}  // namespace tandem
