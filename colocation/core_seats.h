#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tandem {

// The cores that the threads of runs keep to, a seat for each thread. A virtual machine halts its idle cores, and the
// kernel takes a halted one for one that is busy elsewhere; beside training no core is ever idle. So a thread that is
// woken for its part of a run is often put behind another of the same run, although there is a core for it. One that
// may run nowhere else is not. Constant after construction, thread-safe.
class CoreSeats {
 public:
  // Without cores nobody keeps to any.
  CoreSeats() = default;
  explicit CoreSeats(std::vector<int> cores) : cores_(std::move(cores)) {}

  [[nodiscard]] const std::vector<int>& cores() const { return cores_; }
  // Has the calling thread keep to the core of that seat. False, and it stays as it was: there is no such seat, or the
  // core was taken from this process.
  [[nodiscard]] bool Take(std::size_t seat) const;

 private:
  std::vector<int> cores_;
};

}  // namespace tandem
