#include "colocation/core_seats.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "api/base/errno_text.h"
#include "profiler/machine.h"

namespace tandem {

CoreSeats::CoreSeats(std::vector<int> cores, News news)
    : cores_(std::move(cores)), news_(std::move(news)), there_(CoresThere()) {}

cpu_set_t CoreSeats::CoresThere() const {
  const cpu_set_t allowed = CoreSet(AllowedCoreNumbers());
  const cpu_set_t seats = CoreSet(cores_);
  cpu_set_t there;
  CPU_AND(&there, &allowed, &seats);
  return there;
}

void CoreSeats::SeatPool(std::vector<int> threads) {
  const MutexLock lock(mu_);
  pool_ = std::move(threads);
}

bool CoreSeats::KeepTo(int thread, const cpu_set_t& cores) {
  if (::sched_setaffinity(thread, sizeof cores, &cores) == 0) return true;
  // A core that has just gone is no refusal, and neither is a thread.
  const bool refused = errno != EINVAL && errno != ESRCH;
  if (refused && news_.refused && !told_.exchange(true)) news_.refused(ErrnoText());
  return false;
}

bool CoreSeats::Take(std::size_t seat) {
  if (seat >= cores_.size()) return false;
  const cpu_set_t own = CoreSet(std::span(cores_).subspan(seat, 1));
  cpu_set_t there;
  {
    const MutexLock lock(mu_);
    there = there_;
  }
  if (CPU_ISSET(cores_[seat], &there)) return KeepTo(0, own);
  // Where it sat somebody else does now.
  if (CPU_COUNT(&there) > 0) KeepTo(0, there);
  return false;
}

bool CoreSeats::Look() {
  if (cores_.empty()) return false;
  const cpu_set_t there = CoresThere();
  std::vector<int> pool;
  bool moved = false;
  {
    const MutexLock lock(mu_);
    moved = !CPU_EQUAL(&there, &there_);
    there_ = there;
    pool = pool_;
  }
  for (std::size_t i = 0; i < pool.size() && i + 1 < cores_.size(); ++i) {
    const auto own = std::span(cores_).subspan(i + 1, 1);
    if (!CPU_ISSET(own.front(), &there) || std::ranges::equal(AllowedCoreNumbers(pool[i]), own)) continue;
    moved |= KeepTo(pool[i], CoreSet(own));
  }
  if (!moved) return false;
  round_.fetch_add(1, std::memory_order_relaxed);
  if (news_.anew) news_.anew();
  return true;
}

void CoreSitter::Sit(std::size_t seat) {
  if (seats_ == nullptr) return;
  const std::uint32_t round = seats_->round();
  if (seat_ == seat && round_ == round) return;
  seat_ = seat;
  round_ = round;
  seats_->Take(seat);
}

}  // namespace tandem
