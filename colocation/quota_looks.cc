#include "colocation/quota_looks.h"

#include <algorithm>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// While it is not known when periods begin it is looked for a beginning this often, for so long, while trainers stand
// still: a group that is throttled all the time shows no beginnings. Then for as long while they run: one that has
// nothing to run shows none either. Then there is a rest.
constexpr auto kLearningLook = 500us;
constexpr auto kLearningTurn = 300ms;
constexpr auto kLearningRest = 2s;
// Until whoever was stopped has left its core.
constexpr auto kSettling = 500us;
// So often, at least, is looked whether a limit was changed.
constexpr auto kLongestLook = 1s;

}  // namespace

bool QuotaLooks::Adjust(const Known& known, MonotonicTime now, ColocationDecision& decision) {
  decision.look_again = std::min<nanoseconds>(decision.look_again, known.fresh ? nanoseconds(kSettling) : kLongestLook);
  if (!known.learning) {
    learning_since_.reset();
    return false;
  }
  if (!learning_since_) learning_since_ = now;
  const auto since = (now - *learning_since_) % (2 * kLearningTurn + kLearningRest);
  const bool rests = since >= 2 * kLearningTurn;
  if (!rests) decision.look_again = std::min<nanoseconds>(decision.look_again, kLearningLook);
  const bool held = since < kLearningTurn;
  if (held) decision.hold = HoldReason::kQuota;
  return held;
}

}  // namespace tandem
