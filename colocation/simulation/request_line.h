#pragma once

#include <cstddef>
#include <vector>

#include "colocation/simulation/event_clock.h"

namespace tandem::simulation {

struct Request {
  Time arrival = 0;
  Time deadline = kNever;
  double factor = 1;  // Of the time that a run takes.
};

// The waiting requests of one model, those with the earliest deadlines first: as all have the same SLO, that is the
// order in which they came. Grows to what it once had to hold, and never again. Used by one thread.
class RequestLine {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Request& operator[](std::size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }

  void Push(const Request& request) {
    if (size_ == slots_.size()) Grow();
    slots_[(first_ + size_++) & (slots_.size() - 1)] = request;
  }
  void Pop() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  // How many have deadlines up to this one.
  [[nodiscard]] std::size_t UpTo(Time deadline) const {
    std::size_t low = 0;
    for (std::size_t high = size_; low < high;) {
      const std::size_t middle = (low + high) / 2;
      (*this)[middle].deadline <= deadline ? low = middle + 1 : high = middle;
    }
    return low;
  }

 private:
  void Grow() {
    std::vector<Request> larger(slots_.empty() ? 16 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    slots_.swap(larger);
    first_ = 0;
  }

  std::vector<Request> slots_;  // A power of two.
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tandem::simulation
