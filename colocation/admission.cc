#include "colocation/admission.h"

#include "api/base/duration.h"

namespace tandem {
namespace {

// From the end of a run to the answer's being sent.
constexpr std::chrono::microseconds kAnswering{500};
// What was learnt before this is worth a run to learn it anew.
constexpr std::chrono::seconds kOld{1};

bool IsOld(const RunPrediction& run, MonotonicTime now) {
  return now - run.learnt > kOld;
}

}  // namespace

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
  if (s.idle && IsOld(*s.run, s.now)) return {};
  const std::chrono::nanoseconds left = *s.deadline - s.now;
  if (s.work_ahead + s.run->high + kAnswering <= left) return {};
  return Fail(ErrorCode::kUnavailable,
              "model '{}': the deadline cannot be met: {:.3f} ms are left, and {:.3f} ms of work ahead and a run of up "
              "to {:.3f} ms are expected",
              s.model, Ms(left), Ms(s.work_ahead), Ms(s.run->high));
}

Result<std::unique_ptr<const AdmissionPolicy>> MakeAdmission(std::string_view name) {
  if (name == "deadline") return std::make_unique<DeadlineAdmission>();
  if (name == "queue") return std::make_unique<BoundedQueueAdmission>();
  return Invalid("admission '{}' is not known; known are deadline, queue", name);
}

bool DeadlineAdmission::IsHopeless(MonotonicTime now, MonotonicTime deadline,
                                   const std::optional<RunPrediction>& run) const {
  return run && !IsOld(*run, now) && now + run->typical > deadline;
}

}  // namespace tandem
