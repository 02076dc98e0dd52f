#pragma once

#include <cstdint>
#include <string_view>

#include "api/base/clock.h"
#include "colocation/model_bits.h"
#include "colocation/trainer_board.h"

namespace tandem {

// What holds a trainer, the best first.
enum class HoldMeans : std::uint8_t {
  kPidfd,  // Signals through a descriptor of its process: it stands at once, wherever it is.
  kPid,    // The same by the number of its process.
  kBoard,  // It waits at its next operator.
  kNone,
};

// "pidfd": as answers spell it.
[[nodiscard]] constexpr std::string_view HoldMeansName(HoldMeans means) {
  switch (means) {
    case HoldMeans::kPidfd: return "pidfd";
    case HoldMeans::kPid: return "pid";
    case HoldMeans::kBoard: return "board";
    case HoldMeans::kNone: return "none";
  }
  return "";
}

// Holds a trainer and lets it on by the best means that there is and that the system permits: one that it refuses (a
// container's system-call policy, a kernel that does not know it) is given up, and the next is taken. The arbiter has
// one for each trainer, under its lock.
class TrainerReins {
 public:
  TrainerReins() = default;
  // `pidfd` is a descriptor of its process, -1: none; `pid` the number of a child that nobody reaps before this goes,
  // so that no other process can have it, 0: not known; `board` is borrowed, null: it has none.
  TrainerReins(int pidfd, int pid, TrainerBoard* board);

  // False: its process has gone, or there is no means.
  [[nodiscard]] bool Hold(bool hold, MonotonicTime now);
  // What its operators may do while it is not held, and which models have requests under way that they might wait for.
  void SetPermit(Permit permit, ModelSet under_way, MonotonicTime now);

  // What its operators may do now.
  [[nodiscard]] Permit permit() const { return held_at_board_ ? Permit::kHold : permit_; }
  [[nodiscard]] HoldMeans means() const { return means_; }
  // Who is held stands at once, and not only at its next operator.
  [[nodiscard]] bool at_once() const { return means_ == HoldMeans::kPidfd || means_ == HoldMeans::kPid; }

 private:
  enum class Sent { kDone, kGone, kNoMeans };

  // Gives up means until a signal has reached its process, or its end was seen. 0 only asks whether it would.
  Sent Signal(int number);
  void Order(MonotonicTime now);

  int pidfd_ = -1;
  int pid_ = 0;
  TrainerBoard* board_ = nullptr;
  HoldMeans means_ = HoldMeans::kNone;
  Permit permit_ = Permit::kRun;
  ModelSet under_way_ = kEveryModel;
  bool held_at_board_ = false;
};

}  // namespace tandem
