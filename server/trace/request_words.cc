#include "server/trace/request_words.h"

#include <algorithm>
#include <map>
#include <utility>

#include "api/base/format.h"
#include "colocation/work_forecast.h"
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

// What is known of the time of its own run, and what that meant.
std::string OwnRun(const RequestAdmission& admission) {
  if (!admission.run) return "what its own run takes was not known";
  if (admission.weight == RunWeight::kDoubtful) {
    return Format("its own run did not count, as {} is a guess or was learnt too long ago", TimeText(*admission.run));
  }
  return Format("its own run was expected to take up to {}", TimeText(*admission.run));
}

std::string LetIn(const RequestAdmission& admission) {
  if (!admission.left) {
    return Format("let in at once, as it has no deadline; {} waited", CountText(admission.waiting, "request"));
  }
  const std::string deadline = Format("deadline in {}", TimeText(*admission.left));
  if (admission.weight == RunWeight::kIgnored) {
    return Format("let in, as there was room; {} waited, {}", CountText(admission.waiting, "request"), deadline);
  }
  const std::string ahead = Format("{} of work ahead", TimeText(admission.ahead));
  if (!admission.run) return Format("let in, as {}; {}, {}", OwnRun(admission), ahead, deadline);
  return Format("let in: {}, {}, {}", ahead, OwnRun(admission), deadline);
}

std::string Hopeless(const RequestAdmission& admission) {
  const nanoseconds left = admission.left.value_or(nanoseconds(0));
  std::string text = Format("refused at arrival: {} of work were ahead, {}, deadline in {}", TimeText(admission.ahead),
                            OwnRun(admission), TimeText(left));
  const bool counts = admission.run && admission.weight == RunWeight::kCounted;
  if (admission.ahead + (counts ? *admission.run : nanoseconds(0)) <= left) {
    text += Format(", of which {} are kept for its answer", TimeText(AnswerMargin(left)));
  }
  return text;
}

std::string Admission(const RequestAdmission& admission) {
  switch (admission.verdict) {
    case Admitted::kQueued: return LetIn(admission);
    case Admitted::kAtOnce: return "the device was free and such runs are short, so the thread that brought it ran it";
    case Admitted::kStopping: return "refused at arrival: the server was shutting down";
    case Admitted::kGone: return "refused at arrival: its client had gone already";
    case Admitted::kLate:
      return Format("refused at arrival: its deadline had passed {} before",
                    TimeText(admission.left.value_or(nanoseconds(0))));
    case Admitted::kModelFull: return "refused at arrival: as many requests waited for its model as may";
    case Admitted::kFull:
      return Format("refused at arrival: the queue was full, {} waited", CountText(admission.waiting, "request"));
    case Admitted::kHopeless: return Hopeless(admission);
    case Admitted::kNoModel: return "refused at arrival: it asked for a model that is not served";
    case Admitted::kNoVersion: return "refused at arrival: its model is not served in the version that it asked for";
    case Admitted::kNotReady: return "refused at arrival: its model was not ready";
    case Admitted::kUnfit: return "refused at arrival: the request was wrong; its answer said what";
    case Admitted::kNoMemory: return "refused at arrival: there was not enough memory";
  }
  return "";
}

const char* NameOf(const BatchRun& run) {
  return run.model.empty() ? "a model whose name is not kept" : run.model.c_str();
}

// The runs that it waited for; empty: none.
std::string Blocked(const Waiting& waiting) {
  std::map<std::string, std::pair<std::int64_t, nanoseconds>> by_model;  // Runs, and their time in the wait.
  const BatchRun* only = nullptr;
  std::int64_t runs = 0;
  for (const OtherRun& other : waiting.others) {
    if (other.blocked == nanoseconds(0)) continue;
    auto& [count, time] = by_model[NameOf(other.run)];
    ++count;
    time += other.blocked;
    only = &other.run;
    ++runs;
  }
  if (runs == 0) return "";
  if (runs == 1) {
    return Format("batch {} of {} ({}) was running for {} of it", only->batch, NameOf(*only),
                  CountText(only->requests, "request"), TimeText(waiting.blocked));
  }
  std::string list;
  for (const auto& [model, sum] : by_model) {
    list +=
        Format("{}{} of {} ({})", list.empty() ? "" : ", ", CountText(sum.first, "run"), model, TimeText(sum.second));
  }
  if (waiting.workers == 1) return list + " stood before it";
  const bool widths = waiting.wants_all ||
                      std::ranges::any_of(waiting.others, [](const OtherRun& other) { return other.run.exclusive; });
  if (widths) return Format("threads were busy for {} of it, with {}", TimeText(waiting.blocked), list);
  return Format("all {} workers were busy for {} of it, with {}", waiting.workers, TimeText(waiting.blocked), list);
}

// Why it waited although nothing that is known was in the way.
const char* Unblocked(const RequestStory& story) {
  if (story.waiting->unknown) return "what some worker did then is overwritten: it may have been busy";
  if (story.waits_for_company) return "a worker was free, and its model waits for company (max_queue_delay)";
  return "a worker was free and had to wake";
}

std::string WhyItWaited(const RequestStory& story) {
  std::string text = Blocked(*story.waiting);
  const nanoseconds rest = story.waiting->length() - story.waiting->blocked;
  if (text.empty()) return Unblocked(story);
  if (rest >= kWorthTelling) text += Format("; for {} of it {}", TimeText(rest), Unblocked(story));
  return text;
}

void TellWaiting(const RequestStory& story, std::vector<std::string>& words) {
  if (!story.waiting) return;
  const nanoseconds waited = story.waiting->length();
  if (story.runs.empty() && !story.answered) {
    words.push_back(Format("has waited {} so far: {}", TimeText(waited), WhyItWaited(story)));
  } else if (waited >= kWorthTelling) {
    words.push_back(Format("waited {}: {}", TimeText(waited), WhyItWaited(story)));
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
    text += Format(" {} in batch {} of {}, version {}", Company(run), run.batch, NameOf(run), run.version);
    text += run.worker == kFrontEnd ? ", on the thread that brought it" : Format(", on worker {}", run.worker);
    if (run.narrow) text += ", on one thread";
    if (run.exclusive) text += ", on all threads";
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

// "1 other waited for its turn, 2 others were paused"; empty: all could run.
std::string StoodStill(const TrainerCounts& trainers, const char* what) {
  std::string text;
  if (trainers.waiting > 0) {
    text = CountText(trainers.waiting, what) +
           (trainers.waiting == 1 ? " waited for its turn" : " waited for their turns");
  }
  if (trainers.paused == 0) return text;
  if (!text.empty()) text += ", ";
  return text + CountText(trainers.paused, what) + (trainers.paused == 1 ? " was paused" : " were paused");
}

// Of training that was not held, and is known of for so long.
std::string RunWords(const RequestStory& story, nanoseconds known) {
  if (story.trainers.running == 0) return "nobody trained: " + StoodStill(story.trainers, "trainer");
  const bool always = known >= story.end() - story.arrived;
  std::string text = Format("training was let run {}: {}", always ? "all the time" : TimeText(known) + " of it",
                            CountText(story.trainers.running, "trainer"));
  if (const std::string others = StoodStill(story.trainers, "other"); !others.empty()) text += "; " + others;
  return text;
}

void TellTraining(const RequestStory& story, std::vector<std::string>& words) {
  std::vector<const TrainingSpan*> holds;
  nanoseconds known{0};
  nanoseconds held{0};
  for (const TrainingSpan& span : story.training) {
    const nanoseconds time = std::min(span.to.value_or(story.end()), story.end()) - std::max(span.from, story.arrived);
    known += time;
    if (!span.hold && !span.hold_heavy) continue;
    holds.push_back(&span);
    held += time;
  }
  if (story.training_since && *story.training_since > story.arrived) {
    words.push_back(Format("what was decided of training until {} is overwritten",
                           FromArrival(story, std::min(*story.training_since, story.end()))));
  }
  if (story.training.empty()) return;
  if (holds.empty()) {
    words.push_back(RunWords(story, known));
  } else if (holds.size() <= kMostHolds) {
    for (const TrainingSpan* span : holds) words.push_back(HoldWords(story, *span));
  } else {
    words.push_back(Format("training was held {} times, {} in all, the last time because {}", holds.size(),
                           TimeText(held), ReasonOf(*holds.back())));
  }
}

// Whether a late request would have been in time without training.
void TellCause(const RequestStory& story, std::vector<std::string>& words) {
  const nanoseconds added = story.added.value_or(nanoseconds(0));
  if (story.cause == MissCause::kTraining) {
    words.push_back(Format("without training, which added up to {}, it would have been in time", TimeText(added)));
  } else if (story.cause == MissCause::kUnknown) {
    words.push_back(Format(
        "whether it would have been in time without training is not known: its model was not seen to run without "
        "for too long; judged by what it took then, training added up to {}",
        TimeText(added)));
  } else if (story.cause == MissCause::kOther && added > nanoseconds(0)) {
    words.push_back(
        Format("training added at most {}; without it, it would not have been in time either", TimeText(added)));
  }
}

}  // namespace

std::vector<std::string> WordsOf(const RequestStory& story) {
  std::vector<std::string> words;
  words.push_back(Outcome(story));
  if (story.admission) words.push_back(Admission(*story.admission));
  TellWaiting(story, words);
  TellRuns(story, words);
  TellTraining(story, words);
  TellCause(story, words);
  return words;
}

}  // namespace tandem::trace
