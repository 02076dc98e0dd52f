#include "colocation/simulation/cpu_device.h"

#include <algorithm>
#include <cmath>

namespace tandem::simulation {
namespace {

// Of a thread of the server, and of one of nice 19, as the kernel has them.
constexpr double kWeight = 1024;
constexpr double kNiceWeight = 15;

// How much of a want of `wanted` cores is given by so many.
double Part(double given, double wanted) {
  return wanted <= given ? 1 : std::max(0.0, given) / wanted;
}

}  // namespace

CpuDevice::CpuDevice(const Machine& machine, const ColocationPolicy& policy)
    : cores_(machine.width),
      serving_cores_(policy.ServingCores(machine.width)),
      trainer_class_(policy.trainer_class()),
      speed_beside_training_(machine.speed_beside_training) {}

double CpuDevice::Admit(std::span<Stream> trainers, Permits permits) {
  double wanted = 0;
  for (Stream& trainer : trainers) {
    trainer.blocked = permits.hold || (permits.hold_heavy && !trainer.begun && trainer.step().heavy);
    if (trainer.blocked) continue;
    trainer.begun = true;
    wanted += trainer.step().width;
  }
  return wanted;
}

CpuDevice::Phase CpuDevice::PhaseOf(double run_threads, double training) const {
  Phase phase{.free_cores = std::max(0.0, cores_ - run_threads)};
  if (run_threads + training <= cores_) return phase;
  // Threads of each kind that share the fullest cores.
  const double runs = std::max(1.0, run_threads / cores_);
  const double trainers = std::max(1.0, training / cores_);
  if (run_threads <= 0) {
    phase.training = phase.lockstep = 1 / trainers;
    return phase;
  }
  const double weight = trainer_class_ == TrainerClass::kIdle   ? 0
                        : trainer_class_ == TrainerClass::kNice ? kNiceWeight
                                                                : kWeight;
  const double all = runs * kWeight + trainers * weight;
  phase.runs = training > 0 ? kWeight / all : 1 / runs;
  phase.lockstep = weight / all;
  phase.training = Part(cores_ - run_threads * phase.runs, training);
  return phase;
}

CpuDevice::Phases CpuDevice::PhasesOf(double serving, double training) const {
  const double fewer = std::floor(serving);
  const double part = serving - fewer;
  Phases phases{.more = PhaseOf(fewer + 1, training), .fewer = PhaseOf(fewer, training)};
  const double more_time = part / phases.more.runs;
  const double fewer_time = (1 - part) / phases.fewer.runs;
  phases.more.time = more_time / (more_time + fewer_time);
  phases.fewer.time = 1 - phases.more.time;
  phases.runs = 1 / (more_time + fewer_time);
  return phases;
}

CpuDevice::Phases CpuDevice::Apart(double serving, double training) const {
  Phases phases{.runs = Part(*serving_cores_, serving)};
  phases.fewer.training = phases.fewer.lockstep = Part(cores_ - *serving_cores_, training);
  phases.more.time = 0;
  return phases;
}

void CpuDevice::Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const {
  const double training = Admit(trainers, permits);
  const double speed = training > 0 && !serving_cores_ ? speed_beside_training_ : 1;
  double serving = 0;
  for (Stream& run : runs) {
    if (!run.busy()) continue;
    run.begun = true;
    serving += speed * run.step().width;
  }
  const Phases phases = serving_cores_ ? Apart(serving, training) : PhasesOf(serving, training);
  for (Stream& run : runs) {
    run.rate = run.busy() && !permits.stalled ? phases.runs * speed : 0;
    run.use = run.busy() ? run.rate * run.step().width : 0;
  }
  for (Stream& trainer : trainers) {
    trainer.rate = trainer.use = 0;
    if (trainer.blocked || permits.stalled) continue;
    const double threads = std::ceil(trainer.step().width);
    for (const Phase& phase : {phases.more, phases.fewer}) {
      const bool waits = trainer.lockstep && threads > phase.free_cores;
      // Who waits for something else needs no core for that.
      trainer.rate += phase.time * (threads == 0 ? 1 : waits ? phase.lockstep : phase.training);
    }
    trainer.use = trainer.rate * trainer.step().width;
  }
}

}  // namespace tandem::simulation
