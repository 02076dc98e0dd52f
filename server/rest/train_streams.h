#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/http/exchange.h"
#include "server/jobs/job_service.h"

// Answers that grow as a job does, or are large. They are written by the jobs thread, a piece at a time, and wait while
// the client does not read; no thread waits for a client.

namespace tandem::rest {

struct LogRequest {
  jobs::JobId job = 0;
  std::uint64_t offset = 0;
  bool follow = false;  // Goes on until the job has ended.
};

void StreamLog(jobs::JobService& jobs, const LogRequest& request, std::shared_ptr<http::Exchange> exchange);

struct EventRequest {
  std::optional<jobs::JobId> job;  // All jobs when there is none.
  std::int64_t after = 0;          // Sequence number.
  bool follow = true;              // Goes on until the job has ended, or the client goes.
};

// Server-sent events.
void StreamEvents(jobs::JobService& jobs, const EventRequest& request, std::shared_ptr<http::Exchange> exchange);

// The trained model, as an ONNX file; kConflict unless the job has succeeded. It is read as the client takes it.
void StreamModel(jobs::JobService& jobs, jobs::JobId job, std::shared_ptr<http::Exchange> exchange);

}  // namespace tandem::rest
