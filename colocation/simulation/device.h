#pragma once

#include <memory>
#include <span>

#include "colocation/policy.h"
#include "colocation/simulation/scenario.h"
#include "colocation/simulation/stream.h"

namespace tandem::simulation {

// What holds just now.
struct Permits {
  bool hold = false;        // Trainers stand still.
  bool hold_heavy = false;  // Their heavy steps do not begin.
  bool stalled = false;     // Everything stands still: the CPU time of the period is used up.
};

// Shares a machine out to runs and trainers as a kernel or a GPU does. Pure but for the streams: begins the steps that
// may begin, and sets how fast each stream goes until something changes. What is used never exceeds the machine's
// width.
class Device {
 public:
  virtual ~Device() = default;
  virtual void Share(std::span<Stream> runs, std::span<Stream> trainers, Permits permits) const = 0;
};

// Borrows nothing.
[[nodiscard]] std::unique_ptr<const Device> MakeDevice(const Machine& machine, const ColocationPolicy& policy);

}  // namespace tandem::simulation
