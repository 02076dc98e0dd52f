#include "colocation/admission.h"

namespace tandem {

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

}  // namespace tandem
