#include "colocation/training_notes.h"

#include <algorithm>

namespace tandem {
namespace {

// How long what is left lasts for each core, against how long it must: the smallest is the one that matters.
double Room(const QuotaView& quota) {
  return static_cast<double>(quota.left.count()) /
         static_cast<double>(std::max<std::int64_t>(quota.until_refill.count(), 1));
}

}  // namespace

void TrainingNotes::Began(MonotonicTime now, std::uint64_t trainer, int threads, const Standing& standing,
                          std::int64_t job) const {
  if (recorder_ == nullptr) return;
  recorder_->Write(TrainerBegan{.at = now,
                                .trainer = trainer,
                                .threads = threads,
                                .trainers = standing.trainers,
                                .job = job,
                                .hold = HoldCode(standing.hold),
                                .hold_heavy = HoldCode(standing.hold_heavy)});
}

void TrainingNotes::Ended(MonotonicTime now, std::uint64_t trainer, const Standing& standing) const {
  if (recorder_ == nullptr) return;
  recorder_->Write(TrainerEnded{.at = now,
                                .trainer = trainer,
                                .trainers = standing.trainers,
                                .hold = HoldCode(standing.hold),
                                .hold_heavy = HoldCode(standing.hold_heavy)});
}

void TrainingNotes::Held(MonotonicTime now, std::uint64_t trainer, std::optional<HoldReason> hold,
                         std::int64_t job) const {
  if (recorder_ == nullptr) return;
  recorder_->Write(TrainerHeld{.at = now, .trainer = trainer, .hold = HoldCode(hold), .job = job});
}

void TrainingNotes::Stands(MonotonicTime now, std::uint64_t trainer, std::optional<HoldReason> hold,
                           const Standing& standing, std::int64_t job) const {
  if (recorder_ == nullptr) return;
  recorder_->Write(TrainerStands{.at = now,
                                 .trainer = trainer,
                                 .hold = HoldCode(hold),
                                 .job = job,
                                 .trainers = standing.trainers,
                                 .decided_hold = HoldCode(standing.hold),
                                 .decided_hold_heavy = HoldCode(standing.hold_heavy)});
}

void TrainingNotes::Decided(MonotonicTime now, std::optional<HoldReason> hold, std::optional<HoldReason> hold_heavy,
                            const Seen& seen) const {
  if (recorder_ == nullptr) return;
  TrainingDecision decision{.at = now,
                            .hold = HoldCode(hold),
                            .hold_heavy = HoldCode(hold_heavy),
                            .learning = seen.learning,
                            .requests = seen.requests,
                            .trainers = seen.trainers,
                            .quota_left = {},
                            .until_refill = {}};
  if (const auto tightest = std::ranges::min_element(seen.quotas, {}, Room); tightest != seen.quotas.end()) {
    decision.quota_left = tightest->left;
    decision.until_refill = tightest->until_refill;
  }
  recorder_->Write(decision);
}

}  // namespace tandem
