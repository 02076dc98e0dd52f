#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/jobs/job_options.h"
#include "server/jobs/job_record.h"
#include "server/jobs/publisher.h"

namespace tandem::jobs {

// The wish that a job's result be served.
struct PublishOrder {
  JobRecord record;
  TrainingJob job;
  bool only_if_better = false;
};

struct PublishOutcome {
  std::optional<PublishedVersion> published;
  std::string why_not;  // When it is not, since it is no better.
};

// What an order needs besides. All borrowed.
struct PublishParts {
  Publisher& publisher;
  const JobOptions& options;
  const Clock& clock;
  const std::atomic<bool>& stop;
};

// Carries an order out, on the publish thread. "Better" is meant against what is served now: the job's baseline while
// that is still the model that the job began from; else it is measured by the job's own evaluation. kUnavailable when
// the server stops.
[[nodiscard]] Result<PublishOutcome> CarryOut(const PublishOrder& order, const PublishParts& parts);

}  // namespace tandem::jobs
