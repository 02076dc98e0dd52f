#pragma once

#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "bench/pace.h"
#include "loadgen/http_request.h"
#include "loadgen/load_report.h"

namespace tandem::bench {

// A closed loop of `users` for the warm-up and one window of the pace, against a server on the loopback. A request that
// fails is an error: its time would mean nothing. Blocks.
[[nodiscard]] Result<loadgen::ModelReport> HttpWindow(const Pace& pace, int port, const loadgen::HttpRequest& request,
                                                      int users);
[[nodiscard]] Result<loadgen::ModelReport> GrpcWindow(const Pace& pace, int port, const std::string& model,
                                                      const std::vector<Tensor>& inputs, int users);

// POST of the bytes of one tensor, with nothing around them: what a server does that knows its model.
[[nodiscard]] loadgen::HttpRequest RawRequest(int port, const std::string& path, const Tensor& tensor);

}  // namespace tandem::bench
