#include "colocation/trainer_reins.h"

#include <cerrno>
#include <csignal>

#include <sys/syscall.h>
#include <unistd.h>

namespace tandem {

TrainerReins::TrainerReins(int pidfd, int pid, TrainerBoard* board)
    : pidfd_(pidfd), pid_(pid), board_(board), means_(HoldMeans::kPidfd) {
  // What is refused is known before anybody is to be held.
  (void)Signal(0);
}

TrainerReins::Sent TrainerReins::Signal(int number) {
  while (at_once()) {
    const bool by_pidfd = means_ == HoldMeans::kPidfd;
    if (by_pidfd ? pidfd_ >= 0 : pid_ > 0) {
      const long result =
          by_pidfd ? ::syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0) : ::kill(pid_, number);
      if (result == 0) return Sent::kDone;
      if (errno == ESRCH) return Sent::kGone;
    }
    means_ = by_pidfd ? HoldMeans::kPid : board_ != nullptr ? HoldMeans::kBoard : HoldMeans::kNone;
  }
  return Sent::kNoMeans;
}

bool TrainerReins::Hold(bool hold, MonotonicTime now) {
  const Sent sent = Signal(hold ? SIGSTOP : SIGCONT);
  if (sent != Sent::kNoMeans) return sent == Sent::kDone;
  if (means_ == HoldMeans::kNone) return false;
  held_at_board_ = hold;
  Order(now);
  return true;
}

void TrainerReins::SetPermit(Permit permit, ModelSet under_way, MonotonicTime now) {
  permit_ = permit;
  under_way_ = under_way;
  Order(now);
}

void TrainerReins::Order(MonotonicTime now) {
  if (board_ != nullptr) board_->Set(this->permit(), now, under_way_);
}

}  // namespace tandem
