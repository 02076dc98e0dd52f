#include "colocation/simulation/device.h"

#include "colocation/simulation/cpu_device.h"
#include "colocation/simulation/gpu_device.h"

namespace tandem::simulation {

std::unique_ptr<const Device> MakeDevice(const Machine& machine, const ColocationPolicy& policy) {
  if (machine.kind == DeviceKind::kGpu) return std::make_unique<GpuDevice>(machine, policy);
  return std::make_unique<CpuDevice>(machine, policy);
}

}  // namespace tandem::simulation
