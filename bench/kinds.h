#pragma once

#include "bench/measurement.h"

namespace tandem::bench {

// Every kind of measurement that a scenario file may name.
[[nodiscard]] MeasurementKinds AllKinds();

}  // namespace tandem::bench
