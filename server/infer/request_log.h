#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "server/log/log.h"
#include "server/log/log_limit.h"
#include "server/metrics/request_metrics.h"

namespace tandem {

// One line for each answered request: at level error when it failed by our own fault, else at level debug. Costs
// nothing where the level is off. A model that always fails cannot flood the log: beyond a number of error lines a
// second they are counted only. Thread-safe.
class RequestLog {
 public:
  static constexpr int kErrorsPerSecond = 20;

  // `request` has at least its names; `version` is empty when it found no servable.
  void Write(const InferRequest& request, std::string_view version, RequestOutcome outcome,
             const Result<InferResponse>& response, MonotonicTime now) {
    const LogLevel level = outcome == RequestOutcome::kError ? LogLevel::kError : LogLevel::kDebug;
    if (LogEnabled(level)) WriteLine(level, request, version, outcome, response, now);
  }

 private:
  void WriteLine(LogLevel level, const InferRequest& request, std::string_view version, RequestOutcome outcome,
                 const Result<InferResponse>& response, MonotonicTime now);

  std::atomic<std::uint64_t> next_id_{1};  // For requests that have no number either.
  LogLimit errors_{kErrorsPerSecond};
};

}  // namespace tandem
