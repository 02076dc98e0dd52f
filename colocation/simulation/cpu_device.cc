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

double CpuDevice::ThreadShare(double run_threads, double trainer_threads) const {
  const double weight = trainer_class_ == TrainerClass::kNice ? kNiceWeight : kWeight;
  return std::min(1.0, cores_ * kWeight / (run_threads * kWeight + trainer_threads * weight));
}

double CpuDevice::Share(double runs, double training) const {
  if (trainer_class_ == TrainerClass::kIdle || runs + training <= cores_) return 1;
  const double fewer = std::floor(runs);
  const double wide = runs - fewer;
  // With fewer than one thread the rest of the time is spent waiting for something else.
  const double narrow_time = fewer > 0 ? 1 / ThreadShare(fewer, training) : 1;
  return 1 / (wide / ThreadShare(fewer + 1, training) + (1 - wide) * narrow_time);
}

void CpuDevice::Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const {
  const double training = Admit(trainers, permits);
  const bool together = training > 0 && !serving_cores_;
  const double speed = together ? speed_beside_training_ : 1;
  double serving = 0;
  for (Stream& run : runs) {
    if (!run.busy()) continue;
    run.begun = true;
    serving += speed * run.step().width;
  }
  double part = Part(serving_cores_ ? *serving_cores_ : cores_, serving);
  if (together && serving > 0) part = std::min(part, Share(serving, training));
  const double rest = cores_ - (serving_cores_ ? *serving_cores_ : part * serving);
  const double training_part = Part(rest, training);
  for (Stream& run : runs) {
    run.rate = run.busy() && !permits.stalled ? part * speed : 0;
    run.use = run.busy() ? run.rate * run.step().width : 0;
  }
  for (Stream& trainer : trainers) {
    const bool goes = !trainer.blocked && !permits.stalled;
    // Who waits for something else needs no core for that.
    trainer.rate = !goes ? 0 : trainer.step().width > 0 ? training_part : 1;
    trainer.use = trainer.rate * trainer.step().width;
  }
}

}  // namespace tandem::simulation
