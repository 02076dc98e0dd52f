#include "memory/lane_safety.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tandem {
namespace {

// Adds up what is had of so many bytes. It never is more than they are, so nothing overflows.
class Account {
 public:
  explicit Account(std::uint64_t allowed) : left_(allowed) {}

  [[nodiscard]] bool Take(std::uint64_t bytes, std::uint64_t& sum) {
    if (bytes > left_) return false;
    left_ -= bytes;
    sum += bytes;
    return true;
  }
  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  std::uint64_t left_;
};

}  // namespace

Result<LaneUse> CheckSafe(std::span<const Lane> lanes, std::uint64_t allowed) {
  constexpr auto kUnsafe = ErrorCode::kInternal;
  LaneUse use;
  Account account(allowed);
  for (const Lane& lane : lanes) {
    const auto name = std::to_underlying(lane.id);
    if (lane.sessions.empty()) return Fail(kUnsafe, "lane {} has no session", name);
    std::uint64_t largest = 0;
    for (const auto& [id, need] : lane.sessions) {
      if (need.alone && lane.sessions.size() > 1) {
        return Fail(kUnsafe, "lane {} is shared with session {}, which takes no turns", name, std::to_underlying(id));
      }
      largest = std::max(largest, need.ephemeral);
      if (account.Take(need.persistent, use.persistent)) continue;
      return Fail(kUnsafe, "session {} has {} persistent bytes where {} of {} are left", std::to_underlying(id),
                  need.persistent, account.left(), allowed);
    }
    if (lane.next != largest) {
      return Fail(kUnsafe, "lane {} is to have {} bytes where its sessions need {}", name, lane.next, largest);
    }
    if (!account.Take(lane.counted(), use.lanes)) {
      return Fail(kUnsafe, "lane {} has {} bytes where {} of {} are left", name, lane.counted(), account.left(),
                  allowed);
    }
  }
  return use;
}

LaneUse AssertSafe(std::span<const Lane> lanes, std::uint64_t allowed) {
  const Result<LaneUse> use = CheckSafe(lanes, allowed);
  if (use) return *use;
  std::fputs(Format("tandem: memory of lanes is not safe: {}\n", use.error().message).c_str(), stderr);
  std::abort();
}

}  // namespace tandem
