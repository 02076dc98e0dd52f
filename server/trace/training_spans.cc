#include "server/trace/training_spans.h"

#include <algorithm>
#include <map>

#include "api/base/format.h"
#include "colocation/training_notes.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

// Begins a new span where something changes, and ends the one before.
class SpanBuilder {
 public:
  void Decided(const TrainingDecision& decision) {
    TrainingSpan span{.from = decision.at,
                      .to = {},
                      .hold = HoldOf(decision.hold),
                      .hold_heavy = HoldOf(decision.hold_heavy),
                      .learning = decision.learning,
                      .trainers = decision.trainers,
                      .requests = decision.requests,
                      .quota_left = decision.quota_left,
                      .until_refill = decision.until_refill};
    Begin(span);
  }
  // A trainer came or went.
  template <typename Event>
  void Counted(const Event& event) {
    const bool some = event.trainers > 0;
    if (!spans_.empty() && some == (spans_.back().trainers > 0)) {
      spans_.back().trainers = std::max(spans_.back().trainers, event.trainers);
      return;
    }
    TrainingSpan span{.from = event.at,
                      .to = {},
                      .hold = HoldOf(event.hold),
                      .hold_heavy = HoldOf(event.hold_heavy),
                      .trainers = event.trainers};
    Begin(span);
  }
  std::vector<TrainingSpan> Take() { return std::move(spans_); }

 private:
  void Begin(const TrainingSpan& span) {
    if (!spans_.empty()) {
      TrainingSpan& last = spans_.back();
      const bool both_none = last.trainers == 0 && span.trainers == 0;
      const bool same = last.hold == span.hold && last.hold_heavy == span.hold_heavy && last.learning == span.learning;
      if (both_none || (same && (last.trainers > 0) == (span.trainers > 0))) {
        last.trainers = std::max(last.trainers, span.trainers);
        return;
      }
      last.to = span.from;
    }
    spans_.push_back(span);
  }

  std::vector<TrainingSpan> spans_;
};

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
    if (const auto began = As<TrainerBegan>(record)) spans.Counted(*began);
    if (const auto ended = As<TrainerEnded>(record)) spans.Counted(*ended);
  }
  return spans.Take();
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
