#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "colocation/servable.h"
#include "server/repository/warmup.h"

namespace tandem {

// What a profile runs on, in the signature's order: `sample` as it is, or zeros where a shape is given, or where the
// model has no sample, whose batch is 1. Other dimensions that vary must be given, and the error names every input that
// misses one. Pure.
[[nodiscard]] Result<std::vector<Tensor>> ProfileInputs(const ModelSignature& signature, const BatchSettings& batching,
                                                        const std::map<std::string, Shape>& shapes,
                                                        const repository::WarmupSample* sample);

}  // namespace tandem
