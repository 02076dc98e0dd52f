#include "server/infer/outcome.h"

#include <algorithm>

namespace tandem {

RequestOutcome OutcomeOf(const Error* error, std::optional<MonotonicTime> deadline, MonotonicTime now) {
  if (error == nullptr) return RequestOutcome::kSuccess;
  switch (error->code) {
    case ErrorCode::kUnavailable: return RequestOutcome::kRejected;
    case ErrorCode::kDeadlineExceeded: return RequestOutcome::kExpired;
    case ErrorCode::kCancelled:
      return deadline && now >= *deadline ? RequestOutcome::kExpired : RequestOutcome::kCancelled;
    case ErrorCode::kInternal: return RequestOutcome::kError;
    default: return RequestOutcome::kInvalid;
  }
}

SloVerdict VerdictOf(const Error* error, std::optional<MonotonicTime> deadline, MonotonicTime now) {
  if (!deadline) return SloVerdict::kNone;
  switch (OutcomeOf(error, deadline, now)) {
    case RequestOutcome::kSuccess: return now <= *deadline ? SloVerdict::kMet : SloVerdict::kMissed;
    case RequestOutcome::kRejected: return SloVerdict::kRejected;
    case RequestOutcome::kExpired:
      return error->code == ErrorCode::kDeadlineExceeded ? SloVerdict::kRejected : SloVerdict::kMissed;
    case RequestOutcome::kError: return SloVerdict::kMissed;
    case RequestOutcome::kCancelled:
    case RequestOutcome::kInvalid: break;
  }
  return SloVerdict::kNone;
}

Lateness LatenessOf(MonotonicTime arrival, MonotonicTime deadline, MonotonicTime now, std::chrono::nanoseconds needed,
                    std::chrono::nanoseconds added) {
  // Runs side by side may have been held up by more than it was here.
  return {.late = now + needed - deadline,
          .added = std::clamp<std::chrono::nanoseconds>(added, std::chrono::nanoseconds(0), now - arrival)};
}

MissCause CauseOf(SloVerdict verdict, const Lateness& lateness) {
  if (verdict != SloVerdict::kMissed && verdict != SloVerdict::kRejected) return MissCause::kNone;
  return lateness.added.count() > 0 && lateness.late <= lateness.added ? MissCause::kTraining : MissCause::kOther;
}

FailureReason ReasonOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded: return FailureReason::kRejected;
    case ErrorCode::kCancelled: return FailureReason::kCanceled;
    case ErrorCode::kInternal: return FailureReason::kBackend;
    default: return FailureReason::kOther;
  }
}

}  // namespace tandem
