#pragma once

#include <cstdint>
#include <memory>

#include "api/base/result.h"
#include "runtimes/training/data/data_root.h"
#include "runtimes/training/data/example_source.h"

// What OpenData chooses from, by the kind of data.

namespace tandem::training {

[[nodiscard]] Result<std::unique_ptr<ExampleSource>> OpenArrays(const DataSpec& spec, const DataNeeds& needs,
                                                                const DataRoot& root, const DataLimits& limits);

[[nodiscard]] Result<std::unique_ptr<ExampleSource>> OpenCsv(const DataSpec& spec, const DataNeeds& needs,
                                                             const DataRoot& root, const DataLimits& limits);

[[nodiscard]] Result<std::unique_ptr<ExampleSource>> OpenImages(const DataSpec& spec, const DataNeeds& needs,
                                                                const DataRoot& root, const DataLimits& limits);

[[nodiscard]] Result<std::unique_ptr<ExampleSource>> OpenSynthetic(const DataSpec& spec, const DataNeeds& needs,
                                                                   std::uint64_t seed, const DataLimits& limits);

}  // namespace tandem::training
