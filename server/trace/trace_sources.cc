#include "server/trace/trace_sources.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/trace/batch_runs.h"
#include "server/trace/request_story.h"
#include "server/trace/training_spans.h"

namespace tandem::trace {
namespace {

// One request, as far as the window saw it.
struct Drawn {
  std::uint64_t number = 0;
  MonotonicTime arrived;
  std::uint32_t model = 0;
  std::string id;
  std::optional<MonotonicTime> joined;
  std::uint64_t batch = 0;
  std::optional<RequestAnswered> answered;
};

// By number, and so about by arrival.
std::vector<Drawn> ReadRequests(const FlightRecorder& recorder, const TraceWindow& window) {
  std::map<std::uint64_t, Drawn> found;
  recorder.requests().ForEach([&](const FlightRecord& record) {
    if (const auto arrived = As<RequestArrived>(record); arrived && arrived->at < window.to) {
      found[arrived->request] = {
          .number = arrived->request, .arrived = arrived->at, .model = arrived->model, .id = arrived->id.Text()};
      return;
    }
    const auto one = found.find(record.subject);
    if (one == found.end()) return;
    if (const auto joined = As<RequestJoined>(record)) {
      one->second.joined = joined->at;
      one->second.batch = joined->batch;
    } else if (const auto answered = As<RequestAnswered>(record)) {
      one->second.answered = answered;
    }
  });
  std::vector<Drawn> drawn;
  for (auto& [number, request] : found) {
    const MonotonicTime end = request.answered ? request.answered->at : window.to;
    if (window.Overlaps(request.arrived, end)) drawn.push_back(std::move(request));
  }
  if (drawn.size() > kMostOfAKind) drawn.erase(drawn.begin(), drawn.end() - kMostOfAKind);
  return drawn;
}

void DrawRequest(const FlightRecorder& recorder, const Drawn& request, TraceWriter& out) {
  const MonotonicTime end = request.answered ? request.answered->at : out.window().to;
  std::string name = recorder.names().NameOf(request.model);
  if (name.empty()) name = "(not served)";
  const std::string outcome =
      request.answered ? std::string(RequestOutcomeName(static_cast<RequestOutcome>(request.answered->outcome)))
                       : std::string("under way");
  out.Begin(kRequestTracks, request.number, name, request.arrived,
            {{"request", JsonString(RequestName(request.number))},
             {"id", JsonString(request.id)},
             {"outcome", JsonString(outcome)}});
  const MonotonicTime run = std::min(request.joined.value_or(end), end);
  if (run > out.window().from) {
    out.Begin(kRequestTracks, request.number, "waits", request.arrived);
    out.End(kRequestTracks, request.number, "waits", run);
  }
  if (request.joined && run < out.window().to) {
    out.Begin(kRequestTracks, request.number, "runs", run, {{"batch", std::to_string(request.batch)}});
    out.End(kRequestTracks, request.number, "runs", end);
  }
  out.End(kRequestTracks, request.number, name, end);
}

void DrawRequests(const FlightRecorder& recorder, TraceWriter& out) {
  out.NameGroup(kRequestTracks, "requests");
  for (const Drawn& request : ReadRequests(recorder, out.window())) DrawRequest(recorder, request, out);
}

// Lines for runs on threads that brought requests: each takes the first that is free.
class FreeLines {
 public:
  [[nodiscard]] std::int64_t Take(MonotonicTime from, MonotonicTime to) {
    const auto line = std::ranges::find_if(busy_until_, [&](MonotonicTime until) { return until <= from; });
    const auto at = line - busy_until_.begin();
    if (line == busy_until_.end()) {
      busy_until_.push_back(to);
    } else {
      *line = to;
    }
    return at;
  }

 private:
  std::vector<MonotonicTime> busy_until_;
};

void DrawBatches(const FlightRecorder& recorder, TraceWriter& out) {
  constexpr std::int64_t kFirstFrontEnd = 1'000;
  out.NameGroup(kWorkerTracks, "runs");
  std::vector<BatchRun> runs;
  for (auto& [batch, run] : ReadBatchRuns(recorder)) {
    if (out.window().Overlaps(run.began, run.ended.value_or(out.window().to))) runs.push_back(std::move(run));
  }
  if (runs.size() > kMostOfAKind) runs.erase(runs.begin(), runs.end() - kMostOfAKind);
  std::ranges::stable_sort(runs, {}, &BatchRun::began);
  FreeLines front_ends;
  std::set<std::int64_t> named;
  for (const BatchRun& run : runs) {
    const MonotonicTime end = run.ended.value_or(out.window().to);
    const bool front = run.worker == kFrontEnd;
    const std::int64_t line = front ? kFirstFrontEnd + front_ends.Take(run.began, end) : run.worker + 1;
    const TraceWriter::Track track{.group = kWorkerTracks, .line = line};
    if (named.insert(line).second) out.NameTrack(track, front ? "front end" : Format("worker {}", run.worker));
    out.Slice(track, run.elements > 1 ? Format("{} x{}", run.model, run.elements) : run.model, run.began, end,
              {{"batch", std::to_string(run.batch)},
               {"version", std::to_string(run.version)},
               {"requests", std::to_string(run.requests)},
               {"elements", std::to_string(run.elements)},
               {"expected_us", run.expected ? Format("{:.1f}", 1000 * Ms(*run.expected)) : "null"},
               {"failed", run.error ? "true" : "false"}});
  }
}

void DrawDecisions(const FlightRecorder& recorder, TraceWriter& out) {
  const TraceWriter::Track track{.group = kTrainingTracks, .line = 1};
  out.NameGroup(kTrainingTracks, "training");
  out.NameTrack(track, "decisions");
  for (const TrainingSpan& span : TrainingSpans(recorder)) {
    if (span.trainers == 0 || !span.Overlaps(out.window().from, out.window().to)) continue;
    out.Slice(track, span.hold ? Format("held: {}", HoldReasonName(*span.hold)) : StateOf(span), span.from,
              span.to.value_or(out.window().to),
              {{"reason", JsonString(ReasonOf(span))},
               {"requests", std::to_string(span.requests)},
               {"trainers", std::to_string(span.trainers)}});
  }
}

void DrawTrainers(const FlightRecorder& recorder, TraceWriter& out) {
  constexpr std::int64_t kFirstTrainer = 100;
  std::set<std::uint64_t> named;
  for (const TrainerSpan& span : TrainerSpans(recorder)) {
    const MonotonicTime end = span.to.value_or(out.window().to);
    if (!out.window().Overlaps(span.from, end)) continue;
    const TraceWriter::Track track{.group = kTrainingTracks,
                                   .line = kFirstTrainer + static_cast<std::int64_t>(span.trainer)};
    if (named.insert(span.trainer).second) out.NameTrack(track, Format("trainer {}", span.trainer));
    out.Slice(track, span.hold ? Format("held: {}", HoldReasonName(*span.hold)) : "runs", span.from, end);
  }
}

// From when on nothing is missing.
MonotonicTime KnownSince(const FlightRecorder& recorder, const TraceWindow& window) {
  if (recorder.requests().written() <= recorder.requests().capacity()) return window.from;
  std::optional<std::int64_t> oldest;
  recorder.requests().ForEach(
      [&](const FlightRecord& record) { oldest = std::min(oldest.value_or(record.time), record.time); });
  return oldest ? window.Clip(MonotonicTime(std::chrono::nanoseconds(*oldest))) : window.to;
}

}  // namespace

std::vector<TraceSource> RecorderSources(const FlightRecorder& recorder) {
  return {[&recorder](TraceWriter& out) { DrawRequests(recorder, out); },
          [&recorder](TraceWriter& out) { DrawBatches(recorder, out); },
          [&recorder](TraceWriter& out) { DrawDecisions(recorder, out); },
          [&recorder](TraceWriter& out) { DrawTrainers(recorder, out); }};
}

std::string WriteTrace(const FlightRecorder& recorder, const TraceWindow& window,
                       const std::vector<TraceSource>& sources) {
  const MonotonicTime known = KnownSince(recorder, window);
  TraceWriter out(window);
  for (const TraceSource& source : sources) source(out);
  return Format(
      R"({{"otherData":{{"asked_seconds":"{:.3f}","covered_seconds":"{:.3f}"}},"displayTimeUnit":"ms","traceEvents":[)"
      "\n{}\n]}}\n",
      Seconds(window.to - window.from), Seconds(window.to - known), out.Take());
}

}  // namespace tandem::trace
