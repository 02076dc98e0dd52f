#include "server/jobs/hold_watch.h"

namespace tandem::jobs {

void HoldWatch::End() {
  told_.reset();
  mark_.reset();
  found_ = false;
}

HoldWatch::Verdict HoldWatch::Judge(const Look& look) {
  if (!due(look.now)) return Verdict::kNone;
  if (!mark_ || look.now - mark_->now >= kBound) mark_ = look;
  if (look.held && look.used - mark_->used <= kMostUse) return Verdict::kNone;
  found_ = true;
  return ++ignored_ == 1 ? Verdict::kStop : Verdict::kKill;
}

}  // namespace tandem::jobs
