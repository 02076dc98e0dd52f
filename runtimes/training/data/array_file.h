#pragma once

#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "runtimes/training/data/data_root.h"
#include "runtimes/training/data/example_source.h"

namespace tandem::training {

// Opens the NumPy arrays of these names from a .npz file or from a folder of .npy files, in this order. Their data is
// mapped; only what a .npz has packed is held in memory. It need not be aligned. Each tensor is named as messages are
// to name it: file and array. The size of the data fits the shape.
[[nodiscard]] Result<std::vector<Tensor>> OpenNamedArrays(const DataRoot& root, const std::string& path,
                                                          const std::vector<std::string>& names,
                                                          const DataLimits& limits);

}  // namespace tandem::training
