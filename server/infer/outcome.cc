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
                    TollSum added) {
  // Runs side by side may have been held up by more than it was here.
  const auto bounded = [&](std::chrono::nanoseconds time) {
    return std::clamp<std::chrono::nanoseconds>(time, std::chrono::nanoseconds(0), now - arrival);
  };
  const std::chrono::nanoseconds all = bounded(added.added);
  return {.late = now + needed - deadline, .added = all, .doubtful = all - bounded(added.added - added.doubtful)};
}

MissCause CauseOf(SloVerdict verdict, const Lateness& lateness) {
  if (verdict != SloVerdict::kMissed && verdict != SloVerdict::kRejected) return MissCause::kNone;
  if (lateness.added.count() <= 0 || lateness.late > lateness.added) return MissCause::kOther;
  return lateness.late <= lateness.added - lateness.doubtful ? MissCause::kTraining : MissCause::kUnknown;
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
