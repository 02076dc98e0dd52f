#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace tandem {

// One thing that happened: numbers only, of a fixed size. What they mean depends on the kind (flight_events.h).
struct FlightRecord {
  std::int64_t time = 0;      // Nanoseconds of the monotonic clock.
  std::uint64_t subject = 0;  // The request, batch or trainer.
  std::array<std::int64_t, 4> values{};
  std::uint32_t name = 0;  // Of a NameTable.
  std::uint16_t count = 0;
  std::uint8_t code = 0;
  std::uint8_t kind = 0;

  friend bool operator==(const FlightRecord&, const FlightRecord&) = default;
};
static_assert(sizeof(FlightRecord) == 56);

// The last so many records, in memory that is taken once. Thread-safe without locks: a writer takes a ticket and has
// the slot of that number to itself; it never waits. A record is lost when the slot is still being written by a thread
// that was stopped a whole round ago. Readers skip what is being written or was overwritten while they looked.
class RecordRing {
 public:
  // Rounded up to a power of two; 0 keeps nothing.
  explicit RecordRing(std::size_t records);

  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Ever given, with those that are lost.
  [[nodiscard]] std::uint64_t written() const { return next_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  void Write(const FlightRecord& record) noexcept;

  // Whether records are gone because there was no room for more.
  [[nodiscard]] bool overwritten() const { return written() > capacity_; }

  // Those that are whole, in the order of their tickets: about that of time, as far as they came from several threads.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const FlightRecord& record : Last()) visit(record);
  }
  // At most so many, the newest, in the same order. Where one is there all are that came after it and were whole: what
  // is overwritten while they are read is left out, also when it had been read before.
  [[nodiscard]] std::vector<FlightRecord> Last(std::size_t most = std::numeric_limits<std::size_t>::max()) const;

 private:
  friend class RecordRingPeer;  // A test that stops in the middle of a write.

  using Words = std::array<std::uint64_t, sizeof(FlightRecord) / sizeof(std::uint64_t)>;

  // A cache line. `sequence` is 0 before the first record, 2 t + 1 while that of ticket t is written, 2 t + 2 after.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words{};
  };
  static_assert(sizeof(Slot) == 64);

  // The first of those that are kept when `end` are written.
  [[nodiscard]] std::uint64_t Oldest(std::uint64_t end) const { return end > capacity_ ? end - capacity_ : 0; }
  [[nodiscard]] std::optional<FlightRecord> Read(std::uint64_t ticket) const;
  // Null when somebody else has the slot.
  [[nodiscard]] Slot* Claim(std::uint64_t ticket) noexcept;
  static void Fill(Slot& slot, const FlightRecord& record) noexcept;
  static void Publish(Slot& slot, std::uint64_t ticket) noexcept;

  // Constant after construction.
  const std::size_t capacity_;
  const std::unique_ptr<Slot[]> slots_;

  // Changed by every writer.
  alignas(64) std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> lost_{0};
};

}  // namespace tandem
