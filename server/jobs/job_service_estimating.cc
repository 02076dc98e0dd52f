// The part of JobService that estimates: asks come and end on the jobs thread, trainers are waited for on another.

#include <utility>

#include "server/jobs/estimate_job.h"
#include "server/jobs/job_service.h"
#include "server/jobs/submission_check.h"
#include "server/memory/memory_account.h"

namespace tandem::jobs {

void JobService::Estimate(TrainingJob job, Done<MemoryEstimate> done) {
  Begin<MemoryEstimate>(true, std::move(done), [this, job = std::move(job)](Done<MemoryEstimate> answer) mutable {
    auto source = CheckSubmission(job, options_, repository_);
    if (!source) return answer(std::unexpected(source.error()));
    if (estimates_ >= kMostEstimates) {
      return answer(
          Fail(ErrorCode::kUnavailable, "{} estimates are waited for already; try again in a while", estimates_));
    }
    ++estimates_;
    // As if it began now.
    if (job.fit && !job.memory && options_.memory != nullptr) job.memory = options_.memory->Map().free;
    estimating_->Do(
        [this, job = std::move(job), model = std::move(source->model), answer = std::move(answer)]() mutable {
          auto estimate = EstimateJob(job, model, options_, clock_, draining_);
          Post([this, estimate = std::move(estimate), answer = std::move(answer)]() mutable {
            --estimates_;
            answer(std::move(estimate));
          });
        });
  });
}

}  // namespace tandem::jobs
