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
#include "server/trace/lane_tracks.h"
#include "server/trace/request_story.h"
#include "server/trace/training_spans.h"

namespace tandem::trace {
namespace {

// One request, as far as the window saw it.
struct Drawn {
  std::uint64_t number = 0;
  MonotonicTime arrived;
  std::uint32_t model = 0;
  ClientId id;
  std::optional<MonotonicTime> joined;
  std::uint64_t batch = 0;
  std::optional<RequestAnswered> answered;
};

// Leaves out what is too much, and says so.
template <typename T, typename End>
std::size_t KeepNewest(std::vector<T>& all, End end, TraceWriter& out) {
  if (all.size() <= kMostOfAKind) return 0;
  std::ranges::stable_sort(all, {}, end);
  const std::size_t cut = all.size() - kMostOfAKind;
  out.Missing(end(all[cut - 1]));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cut));
  return cut;
}

std::vector<Drawn> ReadRequests(const FlightCopy& copy, const TraceWindow& window) {
  std::map<std::uint64_t, Drawn> found;
  for (const FlightRecord& record : copy.requests) {
    if (const auto arrived = As<RequestArrived>(record)) {
      if (arrived->at >= window.to) continue;
      found[arrived->request] = {
          .number = arrived->request, .arrived = arrived->at, .model = arrived->model, .id = arrived->id};
    } else if (const auto joined = As<RequestJoined>(record)) {
      const auto one = found.find(joined->request);
      if (one == found.end()) continue;
      one->second.joined = joined->at;
      one->second.batch = joined->batch;
    } else if (const auto answered = As<RequestAnswered>(record)) {
      const auto one = found.find(answered->request);
      if (one == found.end()) continue;
      if (window.Overlaps(one->second.arrived, answered->at)) {
        one->second.answered = answered;
      } else {
        found.erase(one);
      }
    }
  }
  std::vector<Drawn> drawn;
  drawn.reserve(found.size());
  for (const auto& [number, request] : found) drawn.push_back(request);
  return drawn;
}

void DrawRequest(const FlightCopy& copy, const Drawn& request, TraceWriter& out) {
  const MonotonicTime end = request.answered ? request.answered->at : out.window().to;
  std::string name = copy.names->NameOf(request.model);
  if (name.empty()) name = "(no name)";
  const std::string outcome =
      request.answered ? std::string(RequestOutcomeName(static_cast<RequestOutcome>(request.answered->outcome)))
                       : std::string("under way");
  out.Begin(kRequestTracks, request.number, name, request.arrived,
            {{"request", JsonString(RequestName(request.number))},
             {"id", JsonString(request.id.Text())},
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

// How many were left out, as below.
std::size_t DrawRequests(const FlightCopy& copy, TraceWriter& out) {
  out.NameGroup(kRequestTracks, "requests");
  std::vector<Drawn> requests = ReadRequests(copy, out.window());
  const auto end = [&](const Drawn& request) { return request.answered ? request.answered->at : out.window().to; };
  const std::size_t left_out = KeepNewest(requests, end, out);
  for (const Drawn& request : requests) DrawRequest(copy, request, out);
  return left_out;
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

std::size_t DrawBatches(const FlightCopy& copy, TraceWriter& out) {
  constexpr std::int64_t kFirstFrontEnd = 1'000;
  out.NameGroup(kWorkerTracks, "runs");
  std::vector<BatchRun> runs;
  for (auto& [batch, run] : ReadBatchRuns(copy)) {
    if (out.window().Overlaps(run.began, run.ended.value_or(out.window().to))) runs.push_back(std::move(run));
  }
  const std::size_t left_out =
      KeepNewest(runs, [&](const BatchRun& run) { return run.ended.value_or(out.window().to); }, out);
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
  return left_out;
}

void DrawDecisions(const FlightCopy& copy, TraceWriter& out) {
  const TraceWriter::Track track{.group = kTrainingTracks, .line = 1};
  out.NameGroup(kTrainingTracks, "training");
  out.NameTrack(track, "decisions");
  for (const TrainingSpan& span : TrainingSpans(copy.training)) {
    if (span.trainers == 0 || !span.Overlaps(out.window().from, out.window().to)) continue;
    out.Slice(track, span.hold ? Format("held: {}", HoldReasonName(*span.hold)) : StateOf(span), span.from,
              span.to.value_or(out.window().to),
              {{"reason", JsonString(ReasonOf(span))},
               {"requests", std::to_string(span.requests)},
               {"trainers", std::to_string(span.trainers)}});
  }
}

void DrawTrainers(const FlightCopy& copy, TraceWriter& out) {
  constexpr std::int64_t kFirstTrainer = 100;
  std::set<std::uint64_t> named;
  for (const TrainerSpan& span : TrainerSpans(copy.training)) {
    const MonotonicTime end = span.to.value_or(out.window().to);
    if (!out.window().Overlaps(span.from, end)) continue;
    const TraceWriter::Track track{.group = kTrainingTracks,
                                   .line = kFirstTrainer + static_cast<std::int64_t>(span.trainer)};
    if (named.insert(span.trainer).second) {
      out.NameTrack(track, span.job > 0 ? Format("job {}", span.job) : Format("trainer {}", span.trainer));
    }
    out.Slice(track, span.hold ? Format("held: {}", HoldReasonName(*span.hold)) : "runs", span.from, end);
  }
}

}  // namespace

std::string WriteTrace(const FlightCopy& copy, const TraceWindow& window, const std::vector<TraceSource>& more) {
  TraceWriter out(window);
  if (copy.requests_since) out.Missing(*copy.requests_since);
  if (copy.training_since) out.Missing(*copy.training_since);
  if (copy.turns_since) out.Missing(*copy.turns_since);
  const std::size_t requests = DrawRequests(copy, out);
  const std::size_t runs = DrawBatches(copy, out);
  DrawDecisions(copy, out);
  DrawTrainers(copy, out);
  DrawLanes(copy, out);
  for (const TraceSource& source : more) source(out);
  return out.Take({{"asked_seconds", Format("\"{:.3f}\"", Seconds(window.to - window.from))},
                   {"covered_seconds", Format("\"{:.3f}\"", Seconds(window.to - out.known_since()))},
                   {"left_out_requests", Format("\"{}\"", requests)},
                   {"left_out_runs", Format("\"{}\"", runs)}});
}

}  // namespace tandem::trace
