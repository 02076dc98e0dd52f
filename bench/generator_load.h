#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/json_fields.h"
#include "bench/peer_process.h"
#include "loadgen/run.h"

namespace tandem::bench {

// What all measurements of the load generator have in common, as a file says it.
struct GeneratorTarget {
  std::string peer;
  int connections = 0;
};

[[nodiscard]] Result<GeneratorTarget> ParseGeneratorTarget(JsonFields& fields, const std::vector<PeerSpec>& peers);

// The peer, started; a generator runs against it. Used by one thread, the generator's.
class GeneratorLoad {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GeneratorLoad>> Start(const BenchContext& context,
                                                                    const GeneratorTarget& target);

  // A load on one small request (an inference on the tiny model's input).
  [[nodiscard]] Result<loadgen::LoadSpec> Spec(const loadgen::ArrivalSpec& arrivals) const;

 private:
  GeneratorLoad(std::unique_ptr<PeerProcess> peer, int connections)
      : peer_(std::move(peer)), connections_(connections) {}

  const std::unique_ptr<PeerProcess> peer_;
  const int connections_;
};

}  // namespace tandem::bench
