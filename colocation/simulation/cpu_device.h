#pragma once

#include <optional>

#include "colocation/simulation/device.h"

namespace tandem::simulation {

// Cores under the kernel's scheduler. Threads that share a core share it by weight; a thread of the idle class has it
// only while nobody else wants it. A run that keeps 1.7 cores busy has two threads for 0.7 of its time and one for the
// rest; that changes too often for the kernel to move threads of training to other cores meanwhile. So training whose
// threads wait for one another goes as fast as the one that is in the way of a request. Steps are left and gone on with
// at any moment.
class CpuDevice final : public Device {
 public:
  CpuDevice(const Machine& machine, const ColocationPolicy& policy);
  void Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const override;

 private:
  // How fast things go while so many threads of runs are there.
  struct Phase {
    double runs = 1;
    double training = 1;    // Whose threads do not wait for one another.
    double lockstep = 1;    // Whose threads do, when there are more of them than free cores.
    double free_cores = 0;  // Of threads of runs.
    double time = 1;        // The part of the time that it takes.
  };
  // What all that runs have comes to: a phase with the more threads, and one with the fewer.
  struct Phases {
    Phase more;
    Phase fewer;
    double runs = 1;  // How fast runs go over both.
  };

  // Begins what may begin, and says how many cores all that may go on want.
  [[nodiscard]] static double Admit(std::span<Stream> trainers, Permits permits);
  [[nodiscard]] Phase PhaseOf(double run_threads, double training) const;
  [[nodiscard]] Phases PhasesOf(double serving, double training) const;
  // On cores of their own.
  [[nodiscard]] Phases Apart(double serving, double training) const;

  // Constant after construction.
  const double cores_;
  const std::optional<int> serving_cores_;  // For runs alone, trainers having the others.
  const TrainerClass trainer_class_;
  const double speed_beside_training_;
};

}  // namespace tandem::simulation
