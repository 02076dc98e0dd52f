#include "server/trace/lane_tracks.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "profiler/turn_events.h"
#include "server/trace/trace_sources.h"

namespace tandem::trace {
namespace {

// Where the record of an end was lost the next turn in the lane ends the one before, as the next of that job does.
void CutOverlaps(std::vector<LaneTurn>& turns) {
  for (std::size_t i = 1; i < turns.size(); ++i) {
    LaneTurn& before = turns[i - 1];
    if (before.lane == turns[i].lane && before.to.value_or(turns[i].from) >= turns[i].from) before.to = turns[i].from;
  }
}

}  // namespace

std::vector<LaneTurn> LaneTurns(std::span<const FlightRecord> records) {
  std::vector<LaneTurn> turns;
  std::map<std::uint64_t, std::size_t> last;  // Of each job, in `turns`.
  for (const FlightRecord& record : records) {
    if (const auto began = As<TurnBegan>(record)) {
      if (const auto found = last.find(began->job); found != last.end() && !turns[found->second].to) {
        turns[found->second].to = began->at;
      }
      last[began->job] = turns.size();
      turns.push_back({.lane = began->lane, .job = began->job, .from = began->at, .to = {}});
    } else if (const auto ended = As<TurnEnded>(record)) {
      const auto found = last.find(ended->job);
      if (found != last.end() && turns[found->second].from == ended->began) {
        turns[found->second].to = ended->at;
      } else {
        turns.push_back({.lane = ended->lane, .job = ended->job, .from = ended->began, .to = ended->at});
      }
    }
  }
  std::ranges::stable_sort(turns, {}, [](const LaneTurn& turn) { return std::pair(turn.lane, turn.from); });
  CutOverlaps(turns);
  return turns;
}

void DrawLanes(const FlightCopy& copy, TraceWriter& out) {
  std::optional<std::uint64_t> named;
  for (const LaneTurn& turn : LaneTurns(copy.turns)) {
    const MonotonicTime end = turn.to.value_or(out.window().to);
    if (!out.window().Overlaps(turn.from, end)) continue;
    const TraceWriter::Track track{.group = kLaneTracks, .line = static_cast<std::int64_t>(turn.lane) + 1};
    if (!named) out.NameGroup(kLaneTracks, "lanes");
    if (named != turn.lane) out.NameTrack(track, Format("lane {}", turn.lane));
    named = turn.lane;
    out.Slice(track, Format("job {}", turn.job), turn.from, end,
              {{"job", std::to_string(turn.job)}, {"lane", std::to_string(turn.lane)}});
  }
}

}  // namespace tandem::trace
