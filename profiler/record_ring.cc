#include "profiler/record_ring.h"

#include <algorithm>
#include <bit>

namespace tandem {

RecordRing::RecordRing(std::size_t records)
    : capacity_(records == 0 ? 0 : std::bit_ceil(records)), slots_(std::make_unique<Slot[]>(capacity_)) {}

void RecordRing::Write(const FlightRecord& record) noexcept {
  if (capacity_ == 0) return;
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  Slot* const slot = Claim(ticket);
  if (slot == nullptr) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Fill(*slot, record);
  Publish(*slot, ticket);
}

RecordRing::Slot* RecordRing::Claim(std::uint64_t ticket) noexcept {
  Slot& slot = slots_[ticket & (capacity_ - 1)];
  const std::uint64_t writing = 2 * ticket + 1;
  std::uint64_t seen = slot.sequence.load(std::memory_order_relaxed);
  // Odd: another writer is at it. Larger: this one slept for a whole round.
  if (seen % 2 == 1 || seen > writing) return nullptr;
  if (!slot.sequence.compare_exchange_strong(seen, writing, std::memory_order_acquire, std::memory_order_relaxed)) {
    return nullptr;
  }
  return &slot;
}

void RecordRing::Fill(Slot& slot, const FlightRecord& record) noexcept {
  const auto words = std::bit_cast<Words>(record);
  // Released one by one: a reader that sees one of them then also sees that the slot is being written.
  for (std::size_t i = 0; i < words.size(); ++i) slot.words[i].store(words[i], std::memory_order_release);
}

void RecordRing::Publish(Slot& slot, std::uint64_t ticket) noexcept {
  slot.sequence.store(2 * ticket + 2, std::memory_order_release);
}

std::vector<FlightRecord> RecordRing::Last(std::size_t most) const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t begin = end - std::min<std::uint64_t>(end - Oldest(end), most);
  std::vector<FlightRecord> records;
  std::vector<std::uint64_t> tickets;
  records.reserve(end - begin);
  tickets.reserve(end - begin);
  for (std::uint64_t ticket = begin; ticket < end; ++ticket) {
    const auto record = Read(ticket);
    if (!record) continue;
    records.push_back(*record);
    tickets.push_back(ticket);
  }
  const std::uint64_t oldest = Oldest(next_.load(std::memory_order_acquire));
  const auto gone = std::ranges::lower_bound(tickets, oldest) - tickets.begin();
  records.erase(records.begin(), records.begin() + gone);
  return records;
}

std::optional<FlightRecord> RecordRing::Read(std::uint64_t ticket) const {
  const Slot& slot = slots_[ticket & (capacity_ - 1)];
  const std::uint64_t whole = 2 * ticket + 2;
  if (slot.sequence.load(std::memory_order_acquire) != whole) return std::nullopt;
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.sequence.load(std::memory_order_relaxed) != whole) return std::nullopt;
  return std::bit_cast<FlightRecord>(words);
}

}  // namespace tandem
