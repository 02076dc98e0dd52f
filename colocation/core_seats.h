#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sched.h>

#include "api/base/mutex.h"

namespace tandem {

// The cores that the threads of runs keep to, a seat for each thread. A virtual machine halts its idle cores, and the
// kernel takes a halted one for one that is busy elsewhere; beside training no core is ever idle. So a thread that is
// woken for its part of a run is often put behind another of the same run, although there is a core for it. One that
// may run nowhere else is not. Workers take seats as they begin runs (CoreSitter); the threads of the pool have theirs
// for good. When cores come and go the kernel lets threads loose, and whoever looks after this puts them back.
// Thread-safe.
class CoreSeats {
 public:
  // Who is told what, by any thread; each may be empty.
  struct News {
    std::function<void(const std::string& reason)> refused;  // Once: the system keeps no thread to a core.
    std::function<void()> anew;                              // Threads had been let loose, or cores have come or gone.
  };

  // Without cores nobody keeps to any.
  explicit CoreSeats(std::vector<int> cores, News news = {.refused = {}, .anew = {}});
  CoreSeats(const CoreSeats&) = delete;
  CoreSeats& operator=(const CoreSeats&) = delete;

  [[nodiscard]] const std::vector<int>& cores() const { return cores_; }

  // The threads of the pool, which keep to the cores after the first, one each. Once, before anybody looks.
  void SeatPool(std::vector<int> threads) EXCLUDES(mu_);
  // Has the calling thread keep to the core of that seat. False: it stays as it was, as there is no such seat or that
  // is refused; or it runs on all cores of seats, as that one was taken from this process.
  bool Take(std::size_t seat) EXCLUDES(mu_);
  // Another number: whoever has a seat is to take it anew.
  [[nodiscard]] std::uint32_t round() const { return round_.load(std::memory_order_relaxed); }

  // Sees which cores there are, and whether threads of the pool keep to theirs; puts those back that do not, and has
  // workers take their seats anew. Whether there was any need. By a thread without a seat, every now and then.
  bool Look() EXCLUDES(mu_);

 private:
  // Of the calling thread, 0, or another of this process.
  bool KeepTo(int thread, const cpu_set_t& cores);
  [[nodiscard]] cpu_set_t CoresThere() const;

  // Constant after construction.
  const std::vector<int> cores_;
  const News news_;

  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> told_{false};

  Mutex mu_;
  cpu_set_t there_ GUARDED_BY(mu_);  // Of those of seats.
  std::vector<int> pool_ GUARDED_BY(mu_);
};

// A thread that has one seat after the other. Used by that thread.
class CoreSitter {
 public:
  // Borrowed; null: there are none.
  explicit CoreSitter(CoreSeats* seats) : seats_(seats) {}

  // Costs a system call when it is another seat than last time, or that is to be taken anew.
  void Sit(std::size_t seat);

 private:
  CoreSeats* const seats_;
  std::optional<std::size_t> seat_;
  std::uint32_t round_ = 0;
};

}  // namespace tandem
