#include "server/jobs/hold_watch.h"

namespace tandem::jobs {

void HoldWatch::End() {
  on_ = found_ = false;
  passed_ = std::chrono::nanoseconds(0);
  mark_.reset();
}

HoldWatch::Verdict HoldWatch::Judge(const Look& look) {
  if (!on_ || found_) return Verdict::kNone;
  passed_ += look.passed;
  if (passed_ >= kBound) {
    passed_ = std::chrono::nanoseconds(0);
    mark_ = look.used;
  }
  if (!mark_ || (look.held && look.used - *mark_ <= kMostUse)) return Verdict::kNone;
  found_ = true;
  return ++ignored_ == 1 ? Verdict::kStop : Verdict::kKill;
}

}  // namespace tandem::jobs
