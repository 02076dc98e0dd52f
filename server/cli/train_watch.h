#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "server/cli/api_client.h"
#include "server/cli/interruption.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {

// Bears with a server that has been heard and does not answer for a while: it may be starting again, and jobs outlive
// that. Used by one thread.
class Patience {
 public:
  static constexpr std::chrono::seconds kLimit{60};

  void Heard() {
    known_ = true;
    away_since_.reset();
  }
  // Whether to ask again after this failure.
  [[nodiscard]] bool Bears(const Error& error, MonotonicTime now) {
    if (!known_ || error.code != ErrorCode::kUnavailable) return false;
    if (!away_since_) away_since_ = now;
    return now - *away_since_ < kLimit;
  }

 private:
  bool known_ = false;
  std::optional<MonotonicTime> away_since_;
};

// What became of the result of a job that has succeeded and is to be published by itself: empty when it is served, else
// "not published: …". Nothing while that is not decided.
[[nodiscard]] Result<std::optional<std::string>> PublishOutcome(ApiClient& client, const JobView& job);

// Shows a job on standard output until it has ended and, if its result is to be published, until that is decided: one
// line that changes on a terminal, a line now and then in a pipe, nothing when `quiet`. An interruption stops the
// watching, not the job, and standard error says so. The exit code: kDone when the job has succeeded.
[[nodiscard]] Result<int> WatchJob(ApiClient& client, std::int64_t id, bool quiet, const Interruption& interruption);

}  // namespace tandem::cli
