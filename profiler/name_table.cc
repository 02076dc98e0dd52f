#include "profiler/name_table.h"

#include <algorithm>
#include <functional>

namespace tandem {
namespace {

// How far from its place a name may stand.
constexpr std::size_t kProbes = 32;

}  // namespace

std::uint32_t NameTable::NumberOf(std::string_view name) noexcept {
  name = name.substr(0, kLongest);
  const std::uint64_t hash = std::hash<std::string_view>()(name) | 1;
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const std::size_t place = (hash / 2 + probe) % kRoom;
    Entry& entry = entries_[place];
    std::uint64_t seen = entry.hash.load(std::memory_order_acquire);
    if (seen == 0 && entry.hash.compare_exchange_strong(seen, hash, std::memory_order_acq_rel)) {
      std::ranges::copy(name, entry.text.begin());
      entry.size.store(static_cast<std::uint32_t>(name.size() + 1), std::memory_order_release);
      return static_cast<std::uint32_t>(place + 1);
    }
    if (seen != hash) continue;
    const std::uint32_t size = entry.size.load(std::memory_order_acquire);
    // One that is being written has the same 63 bits of hash: that is proof enough.
    if (size == 0 || std::string_view(entry.text.data(), size - 1) == name) {
      return static_cast<std::uint32_t>(place + 1);
    }
  }
  return 0;
}

std::string NameTable::NameOf(std::uint32_t number) const {
  if (number == 0 || number > kRoom) return {};
  const Entry& entry = entries_[number - 1];
  const std::uint32_t size = entry.size.load(std::memory_order_acquire);
  return size == 0 ? std::string() : std::string(entry.text.data(), size - 1);
}

}  // namespace tandem
