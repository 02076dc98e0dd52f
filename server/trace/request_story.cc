#include "server/trace/request_story.h"

#include <algorithm>
#include <charconv>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

// "r-17" or "17".
std::optional<std::uint64_t> NumberIn(std::string_view asked) {
  if (asked.starts_with("r-")) asked.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(asked.data(), asked.data() + asked.size(), number);
  if (asked.empty() || error != std::errc() || end != asked.data() + asked.size()) return std::nullopt;
  return number;
}

std::optional<RequestArrived> Find(const FlightRecorder& recorder, std::string_view asked) {
  const auto number = NumberIn(asked);
  std::optional<RequestArrived> by_id;
  std::optional<RequestArrived> by_number;
  recorder.requests().ForEach([&](const FlightRecord& record) {
    const auto arrived = As<RequestArrived>(record);
    if (!arrived) return;
    if (arrived->id.Is(asked)) by_id = arrived;
    if (number && arrived->request == *number) by_number = arrived;
  });
  return by_id ? by_id : by_number;
}

// How far back it reaches, for people.
std::string Reach(const RecordRing& ring, MonotonicTime now) {
  if (ring.written() <= ring.capacity()) return "nothing was overwritten since the server started";
  std::int64_t oldest = now.time_since_epoch().count();
  ring.ForEach([&](const FlightRecord& record) { oldest = std::min(oldest, record.time); });
  return Format("what is kept reaches back {} ({} records; --trace-records sets how many)",
                TimeText(now.time_since_epoch() - std::chrono::nanoseconds(oldest)), ring.capacity());
}

std::unexpected<Error> NotThere(const FlightRecorder& recorder, std::string_view asked, MonotonicTime now) {
  return Fail(ErrorCode::kNotFound, "no request '{}' is in the flight recorder: it never came, or was overwritten; {}",
              Excerpt(asked), Reach(recorder.requests(), now));
}

void Tell(const RequestAnswered& answered, RequestStory& story) {
  story.answered = answered.at;
  story.outcome = static_cast<RequestOutcome>(answered.outcome);
  story.slo = static_cast<SloVerdict>(answered.slo);
  story.error = answered.error;
  story.deadline = answered.deadline;
}

// Whom it waited behind, from its admission to its first run or its answer.
void FindOthers(const BatchRuns& runs, RequestStory& story) {
  if (!story.admission) return;
  const MonotonicTime from = story.admission->at;
  const MonotonicTime to = story.runs.empty() ? story.end() : story.runs.front().began;
  for (const auto& [batch, run] : runs) {
    const bool own = std::ranges::contains(story.runs, batch, &BatchRun::batch);
    if (!own && run.began < to && (!run.ended || *run.ended > from)) story.meanwhile.push_back(run);
  }
  std::ranges::sort(story.meanwhile, {}, &BatchRun::began);
}

}  // namespace

Result<RequestStory> TellStory(const FlightRecorder& recorder, std::string_view asked, MonotonicTime now) {
  const auto arrived = Find(recorder, asked);
  if (!arrived) return NotThere(recorder, asked, now);
  RequestStory story{.number = arrived->request,
                     .id = arrived->id.Text(),
                     .model = recorder.names().NameOf(arrived->model),
                     .arrived = arrived->at,
                     .told = now};
  std::vector<std::uint64_t> joined;
  recorder.requests().ForEach([&](const FlightRecord& record) {
    if (record.subject != story.number) return;
    if (const auto admission = As<RequestAdmission>(record)) story.admission = admission;
    if (const auto batch = As<RequestJoined>(record)) joined.push_back(batch->batch);
    if (const auto answered = As<RequestAnswered>(record)) Tell(*answered, story);
  });
  if (!story.deadline && story.admission && story.admission->left) {
    story.deadline = story.admission->at + *story.admission->left;
  }
  const BatchRuns runs = ReadBatchRuns(recorder);
  for (const std::uint64_t batch : joined) {
    if (const auto run = runs.find(batch); run != runs.end()) story.runs.push_back(run->second);
  }
  std::ranges::sort(story.runs, {}, &BatchRun::began);
  FindOthers(runs, story);
  for (const TrainingSpan& span : TrainingSpans(recorder)) {
    if (span.trainers > 0 && span.Overlaps(story.arrived, story.end())) story.training.push_back(span);
  }
  return story;
}

}  // namespace tandem::trace
