#pragma once

#include <optional>

#include "colocation/simulation/device.h"

namespace tandem::simulation {

// Cores under the kernel's scheduler, as fluid: who wants a part of a core gets a part. A thread of the idle class gets
// what nobody else wants; other threads share by weight when there are more of them than cores. A run that keeps 1.7
// cores busy is taken to have two threads for 0.7 of its time and one for the rest. Steps are left and gone on with at
// any moment.
class CpuDevice final : public Device {
 public:
  CpuDevice(const Machine& machine, const ColocationPolicy& policy);
  void Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const override;

 private:
  // Begins what may begin, and says how many cores all that may go on want.
  [[nodiscard]] static double Admit(std::span<Stream> trainers, Permits permits);
  // How fast runs that want so many cores go when they share them with training that wants so many.
  [[nodiscard]] double Share(double runs, double training) const;
  // The part of a core that each of so many threads of runs gets beside so many of training.
  [[nodiscard]] double ThreadShare(double run_threads, double trainer_threads) const;

  // Constant after construction.
  const double cores_;
  const std::optional<int> serving_cores_;  // For runs alone, trainers having the others.
  const TrainerClass trainer_class_;
  const double speed_beside_training_;
};

}  // namespace tandem::simulation
