#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>

#include "runtimes/training/estimate/workspace.h"

namespace tandem::training {

// Counts the bytes that ATen's tensors without memory (those of the device "meta") would have: from when one is made
// until nobody holds it any more, which is when its memory would be given back. So what is live at any moment of a
// computation on such tensors is what the same computation would hold on real ones. As long as it lives, those that
// its thread makes; one at a time on a thread. Tensors may outlive it.
class MetaLedger {
 public:
  MetaLedger();
  ~MetaLedger();
  MetaLedger(const MetaLedger&) = delete;
  MetaLedger& operator=(const MetaLedger&) = delete;

  [[nodiscard]] std::uint64_t live() const { return counts_->live; }
  // The most that was live at once since the last ForgetPeak().
  [[nodiscard]] std::uint64_t peak() const { return counts_->peak; }
  void ForgetPeak() { counts_->peak = counts_->live; }

  // Shapes of convolutions that are made code for, each of which libraries keep.
  [[nodiscard]] std::size_t convolutions() const { return convolutions_.size(); }
  // Adds one to those of the ledger of this thread, if there is one.
  static void NoteConvolution(const ConvolutionShape& shape);

 private:
  friend class MetaAllocator;
  struct Counts {
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
  };
  void Add(std::uint64_t bytes);

  const std::shared_ptr<Counts> counts_;  // With the tensors that are counted in it.
  std::set<ConvolutionShape> convolutions_;
};

}  // namespace tandem::training
