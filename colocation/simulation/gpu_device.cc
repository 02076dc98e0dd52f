#include "colocation/simulation/gpu_device.h"

#include <algorithm>

namespace tandem::simulation {
namespace {

// Who waits for something else needs no SM for that.
void BeginWaits(std::span<Stream> streams) {
  for (Stream& stream : streams) {
    if (stream.busy() && !stream.blocked && stream.step().width <= 0) stream.begun = true;
  }
}

// The one that became ready first; null when none waits.
Stream* Earliest(std::span<Stream> streams) {
  Stream* earliest = nullptr;
  for (Stream& stream : streams) {
    const bool waits = stream.busy() && !stream.begun && !stream.blocked;
    if (waits && (earliest == nullptr || stream.order < earliest->order)) earliest = &stream;
  }
  return earliest;
}

double Occupied(std::span<const Stream> streams, double most) {
  double occupied = 0;
  for (const Stream& stream : streams) {
    if (stream.busy() && stream.begun) occupied += std::min(stream.step().width, most);
  }
  return occupied;
}

void SetRates(std::span<Stream> streams, double most) {
  for (Stream& stream : streams) {
    const bool runs = stream.busy() && stream.begun;
    stream.rate = !runs ? 0 : stream.step().width > most ? most / stream.step().width : 1;
    stream.use = runs ? std::min(stream.step().width, most) : 0;
  }
}

}  // namespace

GpuDevice::GpuDevice(const Machine& machine, const ColocationPolicy& policy)
    : all_(machine.width),
      serving_(policy.ServingCores(machine.width)),
      requests_first_(policy.trainer_class() != TrainerClass::kNormal) {}

void GpuDevice::Begin(std::span<Stream> first, std::span<Stream> second, double free, double most_first,
                      double most_second) const {
  while (true) {
    Stream* next = Earliest(first);
    double most = most_first;
    Stream* const other = Earliest(second);
    if (next == nullptr || (other != nullptr && !requests_first_ && other->order < next->order)) {
      next = other;
      most = most_second;
    }
    if (next == nullptr) return;
    const double width = std::min(next->step().width, most);
    if (width > free) return;
    next->begun = true;
    free -= width;
  }
}

void GpuDevice::Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const {
  for (Stream& trainer : trainers) {
    trainer.blocked = !trainer.begun && (permits.hold || (permits.hold_heavy && trainer.step().heavy));
  }
  BeginWaits(runs);
  BeginWaits(trainers);
  const double most_serving = serving_ ? *serving_ : all_;
  const double most_training = serving_ ? all_ - *serving_ : all_;
  const double serving = Occupied(runs, most_serving);
  const double training = Occupied(trainers, most_training);
  if (serving_) {
    Begin(runs, {}, most_serving - serving, most_serving, 0);
    Begin({}, trainers, most_training - training, 0, most_training);
  } else {
    Begin(runs, trainers, all_ - serving - training, all_, all_);
  }
  SetRates(runs, most_serving);
  SetRates(trainers, most_training);
}

}  // namespace tandem::simulation
