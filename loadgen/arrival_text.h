#pragma once

#include <optional>
#include <string_view>

#include "api/base/result.h"
#include "loadgen/arrival_spec.h"

namespace tandem::loadgen {

// What a text leaves to arguments of their own.
struct ArrivalDefaults {
  std::optional<double> rate;  // poisson and constant need it.
  std::optional<int> users;    // closed needs it.
};

// Reads the form of the command line and of a run's specification:
//   poisson   constant   closed
//   bursty:on=200,off=5,on_s=1,off_s=4
//   ramp:from=10,to=100[,over_s=30]
//   steps:10x5,50x5,10x10               rate x seconds, the last one held
//   diurnal:mean=50,swing=0.8,period_s=60
//   trace:FILE                          names the file in trace_file; the caller reads it (trace_file.h)
// Fields may stand in any order. Pure. kInvalidArgument names the field and the value.
[[nodiscard]] Result<ArrivalSpec> ParseArrivals(std::string_view text, const ArrivalDefaults& defaults);

}  // namespace tandem::loadgen
