#include "bench/synthetic_job.h"

#include <cstdint>

#include "api/base/format.h"

namespace tandem::bench {

std::string SyntheticJob(const std::string& model, int batch) {
  constexpr std::int64_t kManySteps = 1'000'000'000;
  return Format(
      R"({{"model": "{}", "data": {{"kind": "synthetic", "samples": 256, "classes": 1000}}, "batch_size": {}, "steps": {}}})",
      model, batch, kManySteps);
}

}  // namespace tandem::bench
