#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/json_fields.h"
#include "bench/peer_spec.h"

namespace tandem::bench {

struct BenchContext;

// One sample for each repetition, in seconds, bytes, or plain numbers (rates are per second); or why there are none.
struct Series {
  std::vector<double> samples;
  std::string not_run;
};
using SeriesMap = std::map<std::string, Series>;

// One kind of measurement with the parameters of a scenario file. Knows nothing of rows, units and goals: it makes
// series of samples, and the file's rows say what is shown of them. Made by the parser of its kind, called by
// RunScenario(), used by one thread.
class Measurement {
 public:
  virtual ~Measurement() = default;

  // The names of all series that it can make; rows that name another are refused when the file is read.
  [[nodiscard]] virtual std::vector<std::string> series() const = 0;

  // Makes at least the series of `wanted`, which are among series(). A series that a peer stands in the way of comes
  // with the reason; what goes wrong on our own side is an error.
  [[nodiscard]] virtual Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const = 0;
};

// Takes its own fields of a measurement's object. The reader has asked for "kind" and "rows", and calls Finish().
using MeasurementParser = Result<std::unique_ptr<Measurement>> (*)(JsonFields& fields,
                                                                   const std::vector<PeerSpec>& peers);
// By the name that stands in files under "kind".
using MeasurementKinds = std::map<std::string, MeasurementParser>;

}  // namespace tandem::bench
