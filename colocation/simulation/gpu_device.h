#pragma once

#include <optional>

#include "colocation/simulation/device.h"

namespace tandem::simulation {

// SMs of a GPU. A kernel begins when as many SMs are free as it is wide, and is never interrupted; what does not fit
// waits in order. Where trainers rank behind the server its kernels are the first in that order, as by priorities of
// streams. A kernel wider than what its side may use takes longer in proportion.
class GpuDevice final : public Device {
 public:
  GpuDevice(const Machine& machine, const ColocationPolicy& policy);
  void Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const override;

 private:
  // Begins kernels of these streams, in order, while they fit.
  void Begin(std::span<Stream> first, std::span<Stream> second, double free, double most_first,
             double most_second) const;

  // Constant after construction.
  const double all_;
  const std::optional<int> serving_;  // SMs for runs alone, trainers having the others.
  const bool requests_first_;
};

}  // namespace tandem::simulation
