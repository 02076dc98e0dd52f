#pragma once

#include <memory>

#include "api/base/inference_session.h"
#include "api/wire/proto/model_config.pb.h"

namespace tandem::repository {

// Where the completed configuration has `reshape` on an input or output: a session that takes and gives the shapes that
// clients see and hands the graph those it wants, without touching the data. Else `session` itself.
[[nodiscard]] std::unique_ptr<InferenceSession> ApplyReshape(const inference::ModelConfig& config,
                                                             ModelSignature served,
                                                             std::unique_ptr<InferenceSession> session);

}  // namespace tandem::repository
