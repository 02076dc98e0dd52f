#pragma once

#include <string_view>

namespace tandem::training {

// Whether training knows an operator of ONNX's own domain, by its name alone. Needs nothing of libtorch: the server
// asks it before a trainer is started. (Attributes and forms are checked by the trainer.)
[[nodiscard]] bool IsSupportedOp(std::string_view op);

}  // namespace tandem::training
