#include "colocation/admission.h"

#include <algorithm>
#include <cmath>

#include "api/base/duration.h"
#include "colocation/work_forecast.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kOld{1};

bool HasRoom(const AdmissionSnapshot& s) {
  return s.queued < s.max_queued && (s.max_queued_model == 0 || s.queued_model < s.max_queued_model);
}

}  // namespace

bool IsDoubtful(const RunPrediction& run, MonotonicTime now) {
  return run.guessed() || now - run.learnt > kOld;
}

Status BoundedQueueAdmission::Admit(const AdmissionSnapshot& s) const {
  if (s.deadline && *s.deadline <= s.now) {
    return Fail(ErrorCode::kDeadlineExceeded, "model '{}': the deadline had passed on arrival", s.model);
  }
  if (s.max_queued_model > 0 && s.queued_model >= s.max_queued_model) {
    return Fail(ErrorCode::kUnavailable, "model '{}': its queue is full ({} requests wait; max_queue_size is {})",
                s.model, s.queued_model, s.max_queued_model);
  }
  if (s.queued >= s.max_queued) {
    return Fail(ErrorCode::kUnavailable, "the queue is full ({} requests wait; --max-queue is {})", s.queued,
                s.max_queued);
  }
  return {};
}

Status DeadlineAdmission::Admit(const AdmissionSnapshot& s) const {
  TANDEM_TRY(room_.Admit(s));
  if (!s.deadline || !s.run) return {};
  const std::chrono::nanoseconds left = *s.deadline - s.now;
  const std::chrono::nanoseconds run = IsDoubtful(*s.run, s.now) ? std::chrono::nanoseconds(0) : s.run->high;
  if (s.work_ahead + run + AnswerMargin(left) <= left) return {};
  return Fail(ErrorCode::kUnavailable,
              "model '{}': the deadline cannot be met: {:.3f} ms are left, and {:.3f} ms of work ahead and a run of up "
              "to {:.3f} ms are expected",
              s.model, Ms(left), Ms(s.work_ahead), Ms(run));
}

RunWeight DeadlineAdmission::WeightOf(const AdmissionSnapshot& s) const {
  return s.run && IsDoubtful(*s.run, s.now) ? RunWeight::kDoubtful : RunWeight::kCounted;
}

Shortfall ShortfallOf(const AdmissionSnapshot& seen, RunWeight weight, AloneTime alone) {
  using std::chrono::nanoseconds;
  if (!seen.deadline || !seen.run) return {};
  const nanoseconds left = *seen.deadline - seen.now;
  const nanoseconds work = seen.work_ahead + (weight == RunWeight::kCounted ? seen.run->high : nanoseconds(0));
  Shortfall shortfall{.late = work + AnswerMargin(left) - left, .added = {}, .sure = alone.sure};
  const nanoseconds typical = seen.run->typical;
  if (alone.typical.count() <= 0 || alone.typical >= typical) return shortfall;
  const double share = static_cast<double>((typical - alone.typical).count()) / static_cast<double>(typical.count());
  shortfall.added = nanoseconds(std::llround(static_cast<double>(work.count()) * share));
  return shortfall;
}

std::chrono::milliseconds RetryAfter(const AdmissionSnapshot& seen, RunWeight weight) {
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  nanoseconds wait = seen.work_ahead;
  if (HasRoom(seen) && seen.deadline && seen.run) {
    wait = ShortfallOf(seen, weight, {}).late;
    // Its own run alone is too long: it is tried once what is known of it is old, if nobody runs one before.
    if (wait > seen.work_ahead) {
      const nanoseconds age = seen.run->learnt == kBeforehand ? nanoseconds(0) : seen.now - seen.run->learnt;
      wait = std::max<nanoseconds>(wait - seen.run->high, kOld - age + milliseconds(1));
    }
  }
  return std::clamp(std::chrono::ceil<milliseconds>(wait), milliseconds(0), milliseconds(kLongestRetry));
}

Result<std::unique_ptr<const AdmissionPolicy>> MakeAdmission(std::string_view name) {
  if (name == "deadline") return std::make_unique<DeadlineAdmission>();
  if (name == "queue") return std::make_unique<BoundedQueueAdmission>();
  return Invalid("admission '{}' is not known; known are deadline, queue", name);
}

bool IsHopeless(const AdmissionPolicy& policy, MonotonicTime now, MonotonicTime deadline, const RunWays& ways) {
  return policy.IsHopeless(ways.all_free, deadline, ways.wide) &&
         (!ways.narrow_possible || policy.IsHopeless(now, deadline, ways.narrow));
}

bool DeadlineAdmission::IsHopeless(MonotonicTime now, MonotonicTime deadline,
                                   const std::optional<RunPrediction>& run) const {
  return run && !IsDoubtful(*run, now) && now + run->typical > deadline;
}

}  // namespace tandem
