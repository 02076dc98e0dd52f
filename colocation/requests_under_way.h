#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "colocation/model_bits.h"

namespace tandem {

// Counts the requests that were let in and are not answered yet, in all and by model. Thread-safe, without locks.
// Whoever wants to hear of requests says so in a word of his own before he looks here, and whoever brings or takes one
// looks there afterwards: all in one order, so that one of the two sees the other.
class RequestsUnderWay {
 public:
  // Whether a request is the first, or was the last, of all and of its model.
  struct Edge {
    bool of_all = false;
    bool of_model = false;
  };
  Edge Began(ModelBit bit) {
    const bool of_model = by_model_[bit].fetch_add(1) == 0;
    return {.of_all = pending_.fetch_add(1) == 0, .of_model = of_model};
  }
  Edge Ended(ModelBit bit) {
    answered_.fetch_add(1, std::memory_order_relaxed);
    const bool of_all = pending_.fetch_sub(1) == 1;
    return {.of_all = of_all, .of_model = by_model_[bit].fetch_sub(1) == 1};
  }

  [[nodiscard]] std::int64_t pending() const { return pending_.load(); }
  [[nodiscard]] std::uint64_t answered() const { return answered_.load(std::memory_order_relaxed); }
  // Those of these models that have requests under way; while any is of kAnyModel, all.
  [[nodiscard]] ModelSet Among(ModelSet models) const;

 private:
  std::atomic<std::int64_t> pending_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::array<std::atomic<std::int32_t>, kModelBits> by_model_{};
};

}  // namespace tandem
