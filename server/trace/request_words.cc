#include "server/trace/request_words.h"

#include <algorithm>
#include <map>
#include <utility>

#include "api/base/format.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

using std::chrono::nanoseconds;

// What is shorter is not worth a sentence.
constexpr std::chrono::microseconds kWorthTelling{100};
// More holds than this are summed up.
constexpr std::size_t kMostHolds = 3;

bool WasRefused(const RequestStory& story) {
  return story.admission && story.admission->verdict >= Admitted::kStopping;
}

// ", 3.1 ms before its deadline".
std::string AgainstDeadline(const RequestStory& story) {
  if (!story.deadline) return "; it had no deadline";
  const nanoseconds left = *story.deadline - story.end();
  return Format(", {} {} its deadline", TimeText(left), left >= nanoseconds(0) ? "before" : "after");
}

std::string Outcome(const RequestStory& story) {
  const std::string total = TimeText(story.end() - story.arrived);
  if (!story.answered) return Format("is under way since {}", total) + AgainstDeadline(story);
  if (!story.error) return Format("answered after {}", total) + AgainstDeadline(story);
  if (WasRefused(story)) return Format("refused {} after its arrival", total);
  switch (story.outcome) {
    case RequestOutcome::kRejected:
      return Format("refused after {}: the server had no room for it or was shutting down", total);
    case RequestOutcome::kExpired: return Format("given up after {}: it could not be answered by its deadline", total);
    case RequestOutcome::kCancelled: return Format("given up after {}: its client had gone", total);
    case RequestOutcome::kInvalid:
      return Format("refused after {}: the request was wrong; its answer said what", total);
    default: return Format("failed after {}: the server's own fault; its answer and the log say why", total);
  }
}

std::string OwnRun(const RequestAdmission& admission) {
  if (!admission.run) return "what its own run takes was not known";
  return Format("its own run was expected to take up to {}", TimeText(*admission.run));
}

std::string Admission(const RequestAdmission& admission) {
  switch (admission.verdict) {
    case Admitted::kQueued:
      if (!admission.left)
        return Format("let in at once, as it has no deadline; {} waited", CountText(admission.waiting, "request"));
      return Format("let in: {} of work ahead, {}, deadline in {}", TimeText(admission.ahead), OwnRun(admission),
                    TimeText(*admission.left));
    case Admitted::kAtOnce: return "the device was free and such runs are short, so the thread that brought it ran it";
    case Admitted::kStopping: return "refused at arrival: the server was shutting down";
    case Admitted::kGone: return "refused at arrival: its client had gone already";
    case Admitted::kLate:
      return Format("refused at arrival: its deadline had passed {} before",
                    TimeText(admission.left.value_or(nanoseconds(0))));
    case Admitted::kModelFull: return "refused at arrival: as many requests waited for its model as may";
    case Admitted::kFull:
      return Format("refused at arrival: the queue was full, {} waited", CountText(admission.waiting, "request"));
    case Admitted::kHopeless:
      return Format("refused at arrival: {} of work were ahead, {}, deadline in {}", TimeText(admission.ahead),
                    OwnRun(admission), TimeText(admission.left.value_or(nanoseconds(0))));
  }
  return "";
}

// Why it waited from its admission until then.
std::string Others(const RequestStory& story, MonotonicTime until) {
  const std::vector<BatchRun>& runs = story.meanwhile;
  if (runs.empty()) return "no other run was under way; a worker had to wake, or its model waits for company";
  if (runs.size() == 1) {
    return Format("batch {} of {} ({}) was running", runs[0].batch, runs[0].model,
                  CountText(runs[0].requests, "request"));
  }
  std::map<std::string, std::pair<std::int64_t, nanoseconds>> by_model;  // Runs, and their time in the wait.
  for (const BatchRun& run : runs) {
    auto& [count, time] = by_model[run.model];
    ++count;
    time += std::min(run.ended.value_or(until), until) - std::max(run.began, story.admission->at);
  }
  std::string list;
  for (const auto& [model, sum] : by_model) {
    list +=
        Format("{}{} of {} ({})", list.empty() ? "" : ", ", CountText(sum.first, "run"), model, TimeText(sum.second));
  }
  return list + " stood before it";
}

void TellWaiting(const RequestStory& story, std::vector<std::string>& words) {
  if (!story.admission || story.admission->verdict != Admitted::kQueued) return;
  const MonotonicTime until = story.runs.empty() ? story.end() : story.runs.front().began;
  const nanoseconds waited = until - story.admission->at;
  if (story.runs.empty() && !story.answered) {
    words.push_back(Format("has waited {} so far: {}", TimeText(waited), Others(story, until)));
  } else if (waited >= kWorthTelling) {
    words.push_back(Format("waited {}: {}", TimeText(waited), Others(story, until)));
  }
  if (!story.runs.empty() || !story.answered) return;
  if (story.error == ErrorCode::kCancelled) {
    words.emplace_back("its client went away while it waited; it was never computed");
  } else if (story.error == ErrorCode::kDeadlineExceeded && story.deadline && *story.deadline > *story.answered) {
    words.emplace_back("when its turn came its run would have ended after the deadline; it was never computed");
  } else if (story.error == ErrorCode::kDeadlineExceeded) {
    words.emplace_back("its deadline passed while it waited; it was never computed");
  }
}

std::string Company(const BatchRun& run) {
  if (run.requests <= 1) return "alone";
  return "together with " + CountText(run.requests - 1, "other request");
}

void TellRuns(const RequestStory& story, std::vector<std::string>& words) {
  for (std::size_t i = 0; i < story.runs.size(); ++i) {
    const BatchRun& run = story.runs[i];
    std::string text =
        !run.ended ? Format("runs since {}", TimeText(story.end() - run.began))
                   : Format("{} for {}", i == 0 ? "ran" : "ran again, apart,", TimeText(*run.ended - run.began));
    text += Format(" {} in batch {} of {}, version {}", Company(run), run.batch, run.model, run.version);
    text += run.worker == kFrontEnd ? ", on the thread that brought it" : Format(", on worker {}", run.worker);
    if (run.expected) text += Format("; {} were expected", TimeText(*run.expected));
    if (run.error == ErrorCode::kCancelled) text += "; it was stopped: nobody waited for it any more";
    if (run.error && run.error != ErrorCode::kCancelled) text += "; the run failed";
    words.push_back(std::move(text));
  }
  if (story.runs.empty() || !story.runs.back().ended || !story.answered) return;
  const nanoseconds after = *story.answered - *story.runs.back().ended;
  if (after >= kWorthTelling) words.push_back(Format("handed over {} after its run", TimeText(after)));
}

// "2.0 ms before its arrival", "3.1 ms after it".
std::string FromArrival(const RequestStory& story, MonotonicTime at) {
  const nanoseconds since = at - story.arrived;
  return Format("{} {}", TimeText(since), since < nanoseconds(0) ? "before its arrival" : "after its arrival");
}

std::string HoldWords(const RequestStory& story, const TrainingSpan& span) {
  const std::string until = span.to ? FromArrival(story, *span.to) : std::string("now");
  return Format("{} held from {} to {} because {}", span.hold ? "training was" : "heavy operators of training were",
                FromArrival(story, span.from), until,
                span.hold == HoldReason::kRequests || span.hold_heavy == HoldReason::kRequests
                    ? Format("of {}", ReasonOf(span))
                    : ReasonOf(span));
}

void TellTraining(const RequestStory& story, std::vector<std::string>& words) {
  std::vector<const TrainingSpan*> holds;
  std::int64_t trainers = 0;
  nanoseconds held{0};
  for (const TrainingSpan& span : story.training) {
    trainers = std::max(trainers, span.trainers);
    if (!span.hold && !span.hold_heavy) continue;
    holds.push_back(&span);
    held += std::min(span.to.value_or(story.end()), story.end()) - std::max(span.from, story.arrived);
  }
  if (trainers == 0) return;
  if (holds.empty()) {
    words.push_back("training was let run all the time: " + CountText(trainers, "trainer"));
  } else if (holds.size() <= kMostHolds) {
    for (const TrainingSpan* span : holds) words.push_back(HoldWords(story, *span));
  } else {
    words.push_back(Format("training was held {} times, {} in all, the last time because {}", holds.size(),
                           TimeText(held), ReasonOf(*holds.back())));
  }
}

}  // namespace

std::vector<std::string> WordsOf(const RequestStory& story) {
  std::vector<std::string> words;
  words.push_back(Outcome(story));
  if (story.admission) {
    words.push_back(Admission(*story.admission));
  } else if (story.model.empty()) {
    words.emplace_back("it asked for a model that is not served");
  }
  TellWaiting(story, words);
  TellRuns(story, words);
  TellTraining(story, words);
  return words;
}

}  // namespace tandem::trace
