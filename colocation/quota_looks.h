#pragma once

#include <optional>

#include "api/base/clock.h"
#include "colocation/policy.h"

namespace tandem {

// When CPU limits are looked at again, whatever the policy says, and how the beginnings of their periods are found. The
// server's arbiter and the simulated one have the same. Used by one thread.
class QuotaLooks {
 public:
  // What is known of the limits, of all that there are.
  struct Known {
    bool learning = false;  // Of some it is not known when periods begin.
    bool fresh = false;     // A period of some has just begun.
  };

  // Changes a decision accordingly. Whether trainers are held only to learn.
  bool Adjust(const Known& known, MonotonicTime now, ColocationDecision& decision);

 private:
  std::optional<MonotonicTime> learning_since_;
};

}  // namespace tandem
