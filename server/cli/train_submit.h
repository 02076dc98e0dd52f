#pragma once

#include <string>

#include "server/cli/api_client.h"
#include "server/cli/train_job_flags.h"

namespace tandem::cli {

struct SubmitOptions {
  ClientOptions client;
  std::string file;  // Empty: the flags are all there is.
  JobFlags flags;
  std::string idempotency_key;
  bool watch = false;
  bool json = false;
};

// Sends the job, says what the server made of it and, if wanted, watches it. Returns the exit code; what went wrong
// stands on standard error.
[[nodiscard]] int SubmitJob(const SubmitOptions& options);

// Says what the job would take of memory, and submits nothing; of the options, the file, the flags and `json` count.
[[nodiscard]] int EstimateJob(const SubmitOptions& options);

}  // namespace tandem::cli
