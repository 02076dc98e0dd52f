#include "colocation/board_gate.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "colocation/board_page.h"

namespace tandem {
namespace {

using std::chrono::nanoseconds;

// So often who is held looks again by itself: the word may have been overwritten, and then nobody wakes it.
constexpr std::chrono::seconds kBetweenLooks{1};

std::size_t PlaceOf(std::size_t op) {
  return std::min(op, TrainerBoard::kOps - 1);
}

// Only the trainer writes what this is used for, so no locked addition is needed.
void Add(std::atomic<std::uint64_t>& word, std::uint64_t more) {
  word.store(word.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

std::uint64_t NanosecondsOf(MonotonicTime time) {
  return static_cast<std::uint64_t>(std::max<nanoseconds>(time.time_since_epoch(), nanoseconds(0)).count());
}

template <std::size_t Size>
void Put(std::string_view text, std::array<std::atomic<char>, Size>& bytes) {
  for (std::size_t i = 0; i < Size; ++i) bytes[i].store(i < text.size() ? text[i] : '\0', std::memory_order_relaxed);
}

// A running median: a step towards each new value, so that half of them are larger in the end. The first run is cold,
// and the next ones are soon made up for.
std::uint64_t Nearer(std::uint64_t median, std::uint64_t value, std::uint64_t count) {
  if (count <= 2) return std::max<std::uint64_t>(value, 1);
  const std::uint64_t step = median / (count < 16 ? 4 : 16) + 1;
  return value > median ? std::min(median + step, value) : std::max(median - std::min(median - 1, step), value);
}

}  // namespace

BoardGate::BoardGate(TrainerBoard& board, const Clock& clock, UseThreads use_threads, const ServingSign* sign, int bell)
    : page_(*board.page_), clock_(clock), use_threads_(std::move(use_threads)), sign_(sign), bell_(bell) {}

void BoardGate::Announce(std::span<const OpInfo> ops) {
  const std::size_t count = std::min(ops.size(), TrainerBoard::kOps);
  for (std::size_t i = 0; i < count; ++i) {
    const bool shared = i + 1 == count && ops.size() > count;
    Put(shared ? "others" : ops[i].kind, page_.ops[i].kind);
    Put(shared ? "" : ops[i].name, page_.ops[i].name);
  }
  page_.op_count.store(static_cast<std::uint32_t>(count), std::memory_order_release);
}

void BoardGate::Describe(std::size_t op, const OpWork& work) {
  board::Op& entry = page_.ops[PlaceOf(op)];
  entry.flops.store(work.flops, std::memory_order_relaxed);
  entry.bytes.store(work.bytes, std::memory_order_relaxed);
}

void BoardGate::Begin(std::size_t op) {
  const std::size_t place = PlaceOf(op);
  const MonotonicTime now = clock_.Now();
  const std::optional<std::size_t> before = running_;
  Note(now);
  ++begun_;
  began_ = now;
  running_ = place;
  // In one order with the orders: either we see a new one, or whoever gave it sees what begins.
  page_.current.store(board::Current{.begun = begun_, .place = place}.word());
  const std::uint32_t orders = page_.orders.load();
  if (orders != open_) Heed(orders, before, now);
  if (const int taken = sign_ == nullptr ? 0 : sign_->shown(); taken != taken_) {
    taken_ = taken;
    use_threads_(threads_, taken_);
  }
}

void BoardGate::End() {
  Note(clock_.Now());
  page_.current.store(board::Current{.begun = begun_, .place = {}}.word(), std::memory_order_relaxed);
}

void BoardGate::Ring() const {
  const std::uint64_t one = 1;
  // A bell that cannot be rung any more is one that has not been answered yet.
  if (bell_ >= 0) [[maybe_unused]]
    const ssize_t rung = ::write(bell_, &one, sizeof one);
}

bool BoardGate::BeginIteration() {
  if (running_) End();
  std::uint32_t order = page_.turn.load(std::memory_order_acquire);
  if (board::TurnOf(order) == Turn::kGo) {
    // Whoever reads that the order was seen may take the time that it was seen at from there, too.
    if (page_.runs_by.load(std::memory_order_relaxed) == order) return true;
    page_.began_at.store(NanosecondsOf(clock_.Now()), std::memory_order_relaxed);
    page_.runs_by.store(order, std::memory_order_release);
    return true;
  }
  std::uint32_t told = 0;
  const MonotonicTime came = clock_.Now();
  while (board::TurnOf(order) == Turn::kWait) {
    // Who stands here when it is told to wait has obeyed at once.
    ObeyAtBoundary(Permit::kHold, came);
    if (told != order) {
      if (told == 0) page_.left_at.store(NanosecondsOf(clock_.Now()), std::memory_order_relaxed);
      page_.held.store(1, std::memory_order_relaxed);
      page_.waits_by.store(order, std::memory_order_release);
      told = order;
      Ring();
    }
    const timespec patience{.tv_sec = kBetweenLooks.count(), .tv_nsec = 0};
    ::syscall(SYS_futex, &page_.turn, FUTEX_WAIT, order, &patience, nullptr, 0);
    order = page_.turn.load(std::memory_order_acquire);
  }
  if (told != 0) page_.held.store(0, std::memory_order_relaxed);
  ObeyAtBoundary(Permit::kRun, clock_.Now());
  page_.began_at.store(NanosecondsOf(clock_.Now()), std::memory_order_relaxed);
  page_.waits_by.store(0, std::memory_order_relaxed);
  page_.runs_by.store(order, std::memory_order_release);
  return board::TurnOf(order) == Turn::kGo;
}

void BoardGate::ObeyAtBoundary(Permit permit, MonotonicTime now) {
  const std::uint32_t orders = page_.orders.load(std::memory_order_acquire);
  const Permit before = board::PermitOf(seen_);
  const bool concerned = permit == Permit::kHold || before == Permit::kHold;
  if (board::PermitOf(orders) != permit || before == permit || !concerned) return;
  Acknowledge(now);
  seen_ = orders;
}

void BoardGate::EndIterations() {
  if (running_) End();
  page_.done.store(board::kDone, std::memory_order_release);
  Ring();
}

std::uint64_t BoardGate::length() const {
  return page_.lane.load(std::memory_order_acquire);
}

std::uint64_t BoardGate::Grow(std::uint64_t needed) {
  const std::uint32_t question = page_.lane_answers.load(std::memory_order_relaxed) + 1;
  page_.lane_needed.store(needed, std::memory_order_relaxed);
  page_.lane_asks.store(question, std::memory_order_release);
  Ring();
  for (;;) {
    const std::uint32_t answered = page_.lane_answers.load(std::memory_order_acquire);
    if (answered == question) return length();
    const timespec patience{.tv_sec = kBetweenLooks.count(), .tv_nsec = 0};
    ::syscall(SYS_futex, &page_.lane_answers, FUTEX_WAIT, answered, &patience, nullptr, 0);
  }
}

void BoardGate::Acknowledge(MonotonicTime now) {
  const nanoseconds since_boot = now.time_since_epoch();
  const nanoseconds ordered(page_.ordered_at.load(std::memory_order_relaxed));
  const nanoseconds waited = since_boot - std::clamp(ordered, nanoseconds(0), since_boot);
  Add(page_.acknowledged[AcknowledgementTimes::BucketOf(waited)], 1);
  Add(page_.acknowledged_sum, static_cast<std::uint64_t>(waited.count()));
}

bool BoardGate::Gated(std::size_t place) const {
  const std::uint64_t models = page_.gated[place].load(std::memory_order_relaxed);
  return (models & page_.under_way.load(std::memory_order_relaxed)) != 0;
}

void BoardGate::Heed(std::uint32_t orders, std::optional<std::size_t> before, MonotonicTime now) {
  const Permit first = board::PermitOf(orders);
  // An operator that may run beside requests has done as told all along.
  const bool ended_for_it = first == Permit::kHold || (first == Permit::kLightOnly && before && Gated(*before));
  if (ended_for_it && first != board::PermitOf(seen_)) Acknowledge(now);
  const MonotonicTime asked = now;
  bool waited = false;
  for (;;) {
    const Permit permit = board::PermitOf(orders);
    if (permit == Permit::kRun || (permit == Permit::kLightOnly && !Gated(*running_))) break;
    const nanoseconds patience = TrainerBoard::kMostGated - (now - asked);
    if (permit == Permit::kLightOnly && patience <= nanoseconds(0)) break;
    page_.held.store(1, std::memory_order_relaxed);
    waited = true;
    const timespec gated{.tv_sec = 0, .tv_nsec = std::clamp<long>(patience.count(), 1, 999'999'999)};
    const timespec held{.tv_sec = kBetweenLooks.count(), .tv_nsec = 0};
    // The word is shared between processes, so the private form of the call does not do.
    ::syscall(SYS_futex, &page_.orders, FUTEX_WAIT, orders, permit == Permit::kLightOnly ? &gated : &held, nullptr, 0);
    orders = page_.orders.load(std::memory_order_acquire);
    const MonotonicTime later = clock_.Now();
    if (permit == Permit::kLightOnly) Add(page_.waited, static_cast<std::uint64_t>(nanoseconds(later - now).count()));
    now = later;
  }
  if (waited) {
    page_.held.store(0, std::memory_order_relaxed);
    began_ = now;
    if (board::PermitOf(orders) != first) Acknowledge(now);
  }
  if (const int threads = board::ThreadsOf(orders); threads != threads_) {
    threads_ = threads;
    use_threads_(threads_, taken_);
  }
  seen_ = orders;
  if (board::PermitOf(orders) == Permit::kRun) open_ = orders;
}

void BoardGate::Note(MonotonicTime ended) {
  if (!running_) return;
  const std::size_t place = *std::exchange(running_, std::nullopt);
  const auto took = static_cast<std::uint64_t>(std::max<nanoseconds>(ended - began_, nanoseconds(0)).count());
  board::Op& op = page_.ops[place];
  Add(op.count, 1);
  Add(op.total, took);
  const std::uint64_t count = op.count.load(std::memory_order_relaxed);
  op.typical.store(Nearer(op.typical.load(std::memory_order_relaxed), took, count), std::memory_order_relaxed);

  const std::uint64_t number = page_.records_written.load(std::memory_order_relaxed);
  board::Record& record = page_.records[number % TrainerBoard::kRecords];
  record.sequence.store(2 * number + 1, std::memory_order_relaxed);
  record.began.store(NanosecondsOf(began_), std::memory_order_release);
  record.took.store(took, std::memory_order_release);
  record.op.store(place, std::memory_order_release);
  record.sequence.store(2 * (number + 1), std::memory_order_release);
  page_.records_written.store(number + 1, std::memory_order_release);
}

}  // namespace tandem
