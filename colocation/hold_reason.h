#pragma once

#include <array>
#include <string_view>

namespace tandem {

// Why a trainer that could run is told to wait. Whatever holds trainers has a reason of its own here.
enum class HoldReason {
  kPaused,    // A person said so.
  kQuota,     // What is left of the CPU time of this period is kept for requests.
  kRequests,  // Requests are under way.
  kTurn,      // Another job runs its iteration.
};
// All of them, each at the place of its number.
inline constexpr std::array kHoldReasons = {HoldReason::kPaused, HoldReason::kQuota, HoldReason::kRequests,
                                            HoldReason::kTurn};

// "paused": as metrics and answers spell it.
[[nodiscard]] constexpr std::string_view HoldReasonName(HoldReason reason) {
  switch (reason) {
    case HoldReason::kPaused: return "paused";
    case HoldReason::kQuota: return "quota";
    case HoldReason::kRequests: return "requests";
    case HoldReason::kTurn: return "turn";
  }
  return "";
}

}  // namespace tandem
