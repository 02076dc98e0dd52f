#pragma once

#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// The outputs of an answer to an inference that asked for binary data. An answer that does not fit itself is kInternal.
[[nodiscard]] Result<std::vector<Tensor>> OutputsOf(const MixedAnswer& answer);

// The answer as if every output had come in JSON, FP16 and BF16 too. `outputs` are those of the answer.
[[nodiscard]] std::string AnswerAsJson(const Json::Value& answer, const std::vector<Tensor>& outputs);

// For a person: a line with name, type and shape, then the first values; every one of a BYTES output.
[[nodiscard]] std::string OutputAsText(const Tensor& output);

}  // namespace tandem::cli
