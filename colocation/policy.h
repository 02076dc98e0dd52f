#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "colocation/hold_reason.h"
#include "colocation/model_bits.h"

namespace tandem {

// What is left of a CPU limit (profiler/cpu_limits.h) in the period that runs.
struct QuotaView {
  std::chrono::nanoseconds quota{0};         // Of the whole period.
  std::chrono::nanoseconds left{0};          // CPU time, over all cores; about, and rather less than there is.
  std::chrono::nanoseconds until_refill{0};  // Until the next period begins, or a little before that.
};

// What requests have used of the CPU lately.
struct RequestDemand {
  double cores = 0;                    // CPU time in each time.
  double busy = 0;                     // The same while any is under way; 0: not known.
  std::chrono::nanoseconds each{0};    // CPU time of one.
  std::chrono::nanoseconds uneven{0};  // Variance of what a stretch of time uses, to its mean; never less than each.
};

// All that a decision about training may depend on.
struct ColocationSnapshot {
  std::int64_t pending = 0;             // Requests that were let in and are not answered yet.
  bool held = false;                    // Trainers are held just now.
  int trainers = 1;                     // That are not paused.
  int parallelism = 1;                  // Threads of server and trainers that can run at once.
  int serving = 1;                      // Of them, those that compute requests.
  std::optional<RequestDemand> demand;  // Nullopt: not known yet.
  ModelSet slowed = 0;                  // Models with requests under way that gated operators of trainers wait for.
  bool yields = true;                   // The kernel takes cores from every trainer as soon as requests want them.
  std::chrono::nanoseconds now{0};      // Since any moment that stays the same.
  std::span<const QuotaView> quotas;    // Of every limit that is known well enough.
};

struct ColocationDecision {
  std::optional<HoldReason> hold;        // At once and as a whole; nullopt: not.
  std::optional<HoldReason> hold_heavy;  // Operators that are heavy do not begin.
  bool interrupt_heavy = false;          // And those that have begun are stopped where they are, for a while at most.
  std::chrono::nanoseconds look_again = std::chrono::nanoseconds::max();  // When nothing happens before.
  int threads = 0;                                                        // Of each trainer; 0: all that it has.

  friend bool operator==(const ColocationDecision&, const ColocationDecision&) = default;
};

// Which operators of trainers wait while heavy ones are held.
enum class GatedOps {
  kNone,
  kHeavy,            // Those that are taken to be heavy, for whatever reason.
  kHeavyAsMeasured,  // Those beside which requests were seen to take longer.
};

// How the kernel ranks trainers.
enum class TrainerClass {
  kNormal,  // As equals of the server.
  kNice,    // With the least weight.
  kIdle,    // Behind everybody else.
};

// Decides how training stands behind inference. Pure: same snapshot, same decision; so it runs in tests and simulations
// as it does in the server. One file each, in colocation/policies.
class ColocationPolicy {
 public:
  virtual ~ColocationPolicy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual TrainerClass trainer_class() const = 0;
  // Whether decisions depend on CPU limits, and, sometimes at least, on the requests that are under way.
  [[nodiscard]] virtual bool heeds_quotas() const { return false; }
  [[nodiscard]] virtual bool heeds_requests() const { return false; }
  // Whether to ask again when the first request comes and when the last one goes, as things are. When those of a model
  // do for which operators are gated, it is asked in any case.
  [[nodiscard]] virtual bool HearsOfRequests(const ColocationSnapshot& /*snapshot*/) const { return heeds_requests(); }
  // Whether trainers use fewer threads while runs have cores (colocation/serving_sign.h).
  [[nodiscard]] virtual bool fits_around_runs() const { return false; }
  [[nodiscard]] virtual GatedOps gated_ops() const { return GatedOps::kNone; }
  // How many of these cores are for requests alone, trainers having the others; nullopt: all are for both.
  [[nodiscard]] virtual std::optional<int> ServingCores(int /*cores*/) const { return std::nullopt; }
  [[nodiscard]] virtual ColocationDecision Decide(const ColocationSnapshot& /*snapshot*/) const { return {}; }
};

// The names, the default first.
[[nodiscard]] const std::vector<std::string_view>& ColocationPolicyNames();
// kInvalidArgument lists them.
[[nodiscard]] Result<std::unique_ptr<const ColocationPolicy>> MakeColocationPolicy(std::string_view name);

}  // namespace tandem
