#pragma once

#include "api/base/tensor.h"
#include "api/wire/proto/inference.pb.h"

namespace tandem {

// Converts typed contents to the binary layout of a tensor of `tensor`'s type and shape (its data is not looked at).
// Exactly the field of that type may hold elements.
[[nodiscard]] Result<Bytes> ReadTypedContents(const inference::InferTensorContents& contents, const Tensor& tensor);

}  // namespace tandem
