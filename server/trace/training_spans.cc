#include "server/trace/training_spans.h"

#include <algorithm>
#include <map>
#include <utility>

#include "api/base/format.h"
#include "colocation/training_notes.h"
#include "profiler/turn_events.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

// Begins a new span where something changes, and ends the one before.
class SpanBuilder {
 public:
  void Decided(const TrainingDecision& decision) {
    Begin(Of(decision.trainers, {.from = decision.at,
                                 .to = {},
                                 .hold = HoldOf(decision.hold),
                                 .hold_heavy = HoldOf(decision.hold_heavy),
                                 .learning = decision.learning,
                                 .requests = decision.requests,
                                 .quota_left = decision.quota_left,
                                 .until_refill = decision.until_refill}));
  }
  // A trainer came or went, began to stand still or goes on; that was decided before.
  void Counted(MonotonicTime at, const TrainerCounts& trainers, std::uint8_t hold, std::uint8_t hold_heavy) {
    const TrainingSpan span =
        Of(trainers, {.from = at, .to = {}, .hold = HoldOf(hold), .hold_heavy = HoldOf(hold_heavy)});
    if (!spans_.empty() && WhoOf(span) == WhoOf(spans_.back())) {
      spans_.back().trainers = std::max(spans_.back().trainers, span.trainers);
    } else {
      Begin(span);
    }
  }
  std::vector<TrainingSpan> Take() { return std::move(spans_); }

 private:
  // Whom it is about: what is decided means nothing to those that are paused.
  enum class Who { kNobody, kPaused, kSome };
  static Who WhoOf(const TrainingSpan& span) {
    if (span.trainers == 0) return Who::kNobody;
    return span.hold == HoldReason::kPaused ? Who::kPaused : Who::kSome;
  }
  // That span with those trainers. Between two turns nobody has one, for a moment: that is no change.
  static TrainingSpan Of(const TrainerCounts& trainers, TrainingSpan span) {
    span.trainers = trainers.unpaused();
    if (span.trainers > 0 || trainers.paused == 0) return span;
    return {.from = span.from, .to = {}, .hold = HoldReason::kPaused, .hold_heavy = {}, .trainers = trainers.paused};
  }
  void Begin(const TrainingSpan& span) {
    if (!spans_.empty()) {
      TrainingSpan& last = spans_.back();
      const bool both_none = last.trainers == 0 && span.trainers == 0;
      const bool same = last.hold == span.hold && last.hold_heavy == span.hold_heavy && last.learning == span.learning;
      if (both_none || (same && WhoOf(last) == WhoOf(span))) {
        last.trainers = std::max(last.trainers, span.trainers);
        return;
      }
      last.to = span.from;
    }
    spans_.push_back(span);
  }

  std::vector<TrainingSpan> spans_;
};

// Who was there by a record, if it says so.
std::optional<TrainerCounts> CountsIn(const FlightRecord& record) {
  if (const auto decision = As<TrainingDecision>(record)) return decision->trainers;
  if (const auto began = As<TrainerBegan>(record)) return began->trainers;
  if (const auto ended = As<TrainerEnded>(record)) return ended->trainers;
  if (const auto stands = As<TrainerStands>(record)) return stands->trainers;
  return std::nullopt;
}

std::string HoldWords(HoldReason reason, const TrainingSpan& span) {
  if (reason == HoldReason::kRequests) return CountText(span.requests, "request") + " under way";
  if (reason == HoldReason::kPaused) return "a person paused it";
  if (span.learning) return "it was to be learnt when the periods of the CPU limit begin";
  if (reason != HoldReason::kQuota) return Format("the policy said so ({})", HoldReasonName(reason));
  std::string kept = "the CPU time of the period was kept for requests";
  if (!span.quota_left || !span.until_refill) return kept;
  return Format("{} ({} of it were left, the next began in {})", kept, TimeText(*span.quota_left),
                TimeText(*span.until_refill));
}

}  // namespace

std::vector<TrainingSpan> TrainingSpans(std::span<const FlightRecord> records) {
  SpanBuilder spans;
  for (const FlightRecord& record : records) {
    if (const auto decision = As<TrainingDecision>(record)) spans.Decided(*decision);
    if (const auto began = As<TrainerBegan>(record)) {
      spans.Counted(began->at, began->trainers, began->hold, began->hold_heavy);
    } else if (const auto ended = As<TrainerEnded>(record)) {
      spans.Counted(ended->at, ended->trainers, ended->hold, ended->hold_heavy);
    } else if (const auto stands = As<TrainerStands>(record)) {
      spans.Counted(stands->at, stands->trainers, stands->decided_hold, stands->decided_hold_heavy);
    }
  }
  return spans.Take();
}

TrainerCounts TrainersBetween(std::span<const FlightRecord> records, MonotonicTime from, MonotonicTime to) {
  const auto more = [](const TrainerCounts& one, const TrainerCounts& other) {
    return std::pair(one.running, one.waiting + one.paused) > std::pair(other.running, other.waiting + other.paused);
  };
  TrainerCounts most;
  for (const FlightRecord& record : records) {
    const auto at = MonotonicTime(std::chrono::nanoseconds(record.time));
    if (at >= to) break;
    const auto counts = CountsIn(record);
    if (counts && (at <= from || more(*counts, most))) most = *counts;
  }
  return most;
}

std::string StateOf(const TrainingSpan& span) {
  if (span.trainers == 0) return "none";
  if (span.hold) return "held";
  return span.hold_heavy ? "heavy operators held" : "runs";
}

std::string ReasonOf(const TrainingSpan& span) {
  if (span.trainers == 0) return "nothing is trained";
  if (span.hold) return HoldWords(*span.hold, span);
  if (span.hold_heavy) return HoldWords(*span.hold_heavy, span);
  if (!span.quota_left || !span.until_refill) return "nothing speaks against it";
  return Format("{} of the period's CPU time were left, more than requests were likely to need until the next, {} away",
                TimeText(*span.quota_left), TimeText(*span.until_refill));
}

std::vector<TrainerSpan> TrainerSpans(std::span<const FlightRecord> records) {
  std::vector<TrainerSpan> spans;
  std::map<std::uint64_t, std::size_t> last;  // Of each trainer that is there, in `spans`.
  const auto begin = [&](const auto& event, std::optional<HoldReason> hold) {
    if (const auto found = last.find(event.trainer); found != last.end()) spans[found->second].to = event.at;
    last[event.trainer] = spans.size();
    spans.push_back({.trainer = event.trainer, .job = event.job, .from = event.at, .to = {}, .hold = hold});
  };
  for (const FlightRecord& record : records) {
    if (const auto began = As<TrainerBegan>(record)) begin(*began, std::nullopt);
    if (const auto held = As<TrainerHeld>(record)) begin(*held, HoldOf(held->hold));
    if (const auto stands = As<TrainerStands>(record)) begin(*stands, HoldOf(stands->hold));
    if (const auto ended = As<TrainerEnded>(record)) {
      const auto found = last.find(ended->trainer);
      if (found == last.end()) continue;
      spans[found->second].to = ended->at;
      last.erase(found);
    }
  }
  return spans;
}

}  // namespace tandem::trace
