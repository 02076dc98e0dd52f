#include "server/trace/op_tracks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::trace {
namespace {

// Behind those of the trainers themselves.
constexpr std::int64_t kFirstLine = 1'000'000;

// From when on runs are drawn, so that there are no more than the most.
MonotonicTime FirstDrawn(const std::vector<RecentOps>& trainers, const TraceWindow& window) {
  std::vector<MonotonicTime> ends;
  for (const RecentOps& trainer : trainers) {
    for (const OpRecord& run : trainer.runs) {
      if (window.Overlaps(run.began, run.ended())) ends.push_back(run.ended());
    }
  }
  if (ends.size() <= kMostOfAKind) return window.from;
  const auto first = ends.end() - static_cast<std::ptrdiff_t>(kMostOfAKind);
  std::ranges::nth_element(ends, first);
  return *first;
}

void DrawTrainer(RecentOps& trainer, MonotonicTime first, TraceWriter& out) {
  const TraceWriter::Track track{.group = kTrainingTracks, .line = kFirstLine + trainer.job};
  out.NameTrack(track, Format("job {}: operators", trainer.job));
  std::ranges::stable_sort(trainer.runs, {}, &OpRecord::began);
  MonotonicTime free = MonotonicTime::min();
  for (const OpRecord& run : trainer.runs) {
    const bool drawn = out.window().Overlaps(run.began, run.ended()) && run.ended() >= first;
    if (!drawn || run.began < free || run.op >= trainer.ops.size()) continue;
    free = run.ended();
    const RecentOps::Op& op = trainer.ops[run.op];
    const std::string name = op.info.name.empty() ? op.info.kind : Format("{} {}", op.info.kind, op.info.name);
    out.Slice(track, name, run.began, run.ended(),
              {{"kind", JsonString(op.info.kind)},
               {"node", JsonString(op.info.name)},
               {"class", op.heavy ? "\"heavy\"" : "\"light\""}});
  }
}

}  // namespace

TraceSource DrawOps(std::vector<RecentOps> trainers) {
  return [trainers = std::move(trainers)](TraceWriter& out) mutable {
    const MonotonicTime first = FirstDrawn(trainers, out.window());
    for (RecentOps& trainer : trainers) DrawTrainer(trainer, first, out);
  };
}

}  // namespace tandem::trace
