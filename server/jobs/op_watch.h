#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/clock.h"
#include "colocation/model_bits.h"
#include "colocation/policy.h"
#include "colocation/trainer_board.h"
#include "profiler/interference.h"
#include "profiler/op_classifier.h"
#include "profiler/run_log.h"

namespace tandem::jobs {

// An operator of a trainer, what it costs and what it is taken for.
struct WatchedOp {
  OpTotals totals;
  OpVerdict by_time;
  std::vector<OpPairing> pairings;  // With each model of which enough is known to tell anything, by their names.
  OpVerdict verdict;                // Altogether.
};

// Watches what the operators of one trainer take, and what they do to requests. Jobs thread only.
class OpWatch {
 public:
  // `gated` says which operators are to wait while heavy ones are held.
  explicit OpWatch(GatedOps gated) : gate_(gated) {}

  // An operator that is taken for something else now; with a model, one that is heavy beside that model now, or is not
  // any more.
  struct Change {
    OpInfo op;
    std::string model;  // Empty: altogether.
    OpVerdict before;
    OpVerdict now;
    std::optional<Interference> seen;  // With a model, where anything is known of it now.
  };

  // To be called every now and then, with the runs that ended since. What was taken for one thing and is now taken for
  // another. When it was stopped meanwhile its operators were beside nothing, and runs do not count.
  [[nodiscard]] std::vector<Change> Look(const TrainerBoard& board, std::span<const RunSample> runs, bool was_stopped,
                                         MonotonicTime now);

  [[nodiscard]] const std::vector<WatchedOp>& ops() const { return ops_; }
  // The same with what the board counts now.
  [[nodiscard]] std::vector<WatchedOp> OpsNow(const TrainerBoard& board) const;
  // What each of its operators does to requests for a model, where enough is known: [{"kind", "name", "class", "why",
  // "ratio", "error", "runs"}, …], those that slow them most certainly first, and no more than a few.
  [[nodiscard]] std::vector<Json::Value> Beside(const std::string& model) const;
  // Those that are to wait, and for requests of which models: those beside which they are heavy, or all, as the policy
  // wants it.
  [[nodiscard]] GatedPlaces Gated(ModelBits& models) const;

 private:
  void Measure(const TrainerBoard& board, std::span<const RunSample> runs);
  // What the operator is beside each model, by what is known now; adds what has changed.
  void ClassifyPairings(std::size_t place, std::vector<Change>& changes);

  const GatedOps gate_;
  const OpClassifier classifier_;
  InterferenceMeter meter_;
  std::optional<MonotonicTime> looked_;
  std::vector<RunSample> early_;  // Runs beside operators that had not ended yet.
  std::vector<WatchedOp> ops_;
};

// {"total_ms": …, "ops": [{"kind", "name", "count", "total_ms", …}, …]}, those that took most time first.
[[nodiscard]] Json::Value ProfileToJson(std::span<const WatchedOp> ops);
// {"count": …, "changes": […]}: the first of them, those beside a model before the others, and how many there are.
[[nodiscard]] Json::Value ChangesToJson(std::span<const OpWatch::Change> changes);

}  // namespace tandem::jobs
