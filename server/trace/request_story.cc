#include "server/trace/request_story.h"

#include <algorithm>
#include <charconv>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

// Digits alone, after "r-" or not.
std::optional<std::uint64_t> NumberIn(std::string_view asked) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), number);
  if (asked.empty() || error != std::errc() || end != asked.data() + asked.size()) return std::nullopt;
  return number;
}

std::optional<RequestArrived> Find(const FlightCopy& copy, std::string_view asked) {
  const bool named = asked.starts_with("r-");
  const auto number = NumberIn(named ? asked.substr(2) : asked);
  const ClientId id = ClientId::Of(asked);
  std::optional<RequestArrived> by_id;
  std::optional<RequestArrived> by_number;
  for (const FlightRecord& record : copy.requests) {
    const auto arrived = As<RequestArrived>(record);
    if (!arrived) continue;
    if (arrived->id == id) by_id = arrived;
    if (number && arrived->request == *number) by_number = arrived;
  }
  if (named) return by_number ? by_number : by_id;
  return by_id ? by_id : by_number;
}

// How far back it reaches, for people.
std::string Reach(const FlightCopy& copy, MonotonicTime now) {
  if (!copy.requests_since) return "nothing was overwritten since the server started";
  return Format("what is kept reaches back {} ({} records; --trace-records sets how many)",
                TimeText(now - std::min(now, *copy.requests_since)), copy.capacity);
}

std::unexpected<Error> NotThere(const FlightCopy& copy, std::string_view asked, MonotonicTime now) {
  return Fail(ErrorCode::kNotFound, "no request '{}' is in the flight recorder: it never came, or was overwritten; {}",
              Excerpt(asked), Reach(copy, now));
}

void Tell(const RequestAnswered& answered, RequestStory& story) {
  story.answered = answered.at;
  story.outcome = static_cast<RequestOutcome>(answered.outcome);
  story.slo = static_cast<SloVerdict>(answered.slo);
  story.cause = static_cast<MissCause>(answered.cause);
  story.added = answered.added;
  story.error = answered.error;
  story.deadline = answered.deadline;
}

// What became of it, from the records that are its own.
void TellCourse(const FlightCopy& copy, const BatchRuns& runs, RequestStory& story) {
  for (const FlightRecord& record : copy.requests) {
    if (record.subject != story.number) continue;
    if (const auto admission = As<RequestAdmission>(record)) story.admission = admission;
    if (const auto answered = As<RequestAnswered>(record)) Tell(*answered, story);
    const auto joined = As<RequestJoined>(record);
    if (!joined) continue;
    if (const auto run = runs.find(joined->batch); run != runs.end()) story.runs.push_back(run->second);
  }
  std::ranges::sort(story.runs, {}, &BatchRun::began);
  if (!story.deadline && story.admission && story.admission->left) {
    story.deadline = story.admission->at + *story.admission->left;
  }
}

}  // namespace

Result<RequestStory> TellStory(const FlightCopy& copy, std::string_view asked, MonotonicTime now) {
  const auto arrived = Find(copy, asked);
  if (!arrived) return NotThere(copy, asked, now);
  RequestStory story{.number = arrived->request,
                     .id = arrived->id.Text(),
                     .model = copy.names->NameOf(arrived->model),
                     .waits_for_company = arrived->waits_for_company,
                     .arrived = arrived->at,
                     .training_since = copy.training_since,
                     .told = now};
  const BatchRuns runs = ReadBatchRuns(copy);
  TellCourse(copy, runs, story);
  if (story.admission && story.admission->verdict == Admitted::kQueued) {
    story.waiting = WaitBetween(story.admission->at, story.runs.empty() ? story.end() : story.runs.front().began, runs,
                                story.runs, copy.workers, copy.requests_since.has_value());
  }
  for (const TrainingSpan& span : TrainingSpans(copy.training)) {
    if (span.trainers > 0 && span.Overlaps(story.arrived, story.end())) story.training.push_back(span);
  }
  story.trainers = TrainersBetween(copy.training, story.arrived, story.end());
  return story;
}

}  // namespace tandem::trace
