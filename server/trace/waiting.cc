#include "server/trace/waiting.h"

#include <algorithm>
#include <cstddef>
#include <set>

namespace tandem::trace {
namespace {

// A run begins or ends.
struct Change {
  MonotonicTime at;
  bool begins = false;
  std::size_t run = 0;
};

// Charges each run with the time in which as many ran as there are workers, or one that had all threads; or any at all
// when the request itself got all threads in the end.
void Charge(Waiting& waiting) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < waiting.others.size(); ++i) {
    const BatchRun& run = waiting.others[i].run;
    changes.push_back({.at = std::max(run.began, waiting.from), .begins = true, .run = i});
    changes.push_back({.at = std::min(run.ended.value_or(waiting.to), waiting.to), .begins = false, .run = i});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::set<std::size_t> running;
  MonotonicTime since = waiting.from;
  const auto blocks = [&] {
    if (std::ssize(running) >= waiting.workers) return true;
    if (waiting.wants_all) return !running.empty();
    return std::ranges::any_of(running, [&](std::size_t run) { return waiting.others[run].run.exclusive; });
  };
  for (const Change& change : changes) {
    if (blocks()) {
      waiting.blocked += change.at - since;
      for (const std::size_t run : running) waiting.others[run].blocked += change.at - since;
    }
    since = change.at;
    if (change.begins) {
      running.insert(change.run);
    } else {
      running.erase(change.run);
    }
  }
}

}  // namespace

Waiting WaitBetween(MonotonicTime from, MonotonicTime to, const BatchRuns& runs, std::span<const BatchRun> own,
                    int workers, bool overwritten) {
  Waiting waiting{.from = from, .to = to, .workers = workers, .wants_all = !own.empty() && own.front().exclusive};
  std::set<int> seen;
  for (const auto& [batch, run] : runs) {
    if (run.worker == kFrontEnd) continue;
    seen.insert(run.worker);
    if (std::ranges::contains(own, batch, &BatchRun::batch)) continue;
    if (run.began < to && run.ended.value_or(to) > from) waiting.others.push_back({.run = run});
  }
  std::ranges::stable_sort(waiting.others, {}, [](const OtherRun& other) { return other.run.began; });
  Charge(waiting);
  waiting.unknown = overwritten && std::ssize(seen) < workers;
  return waiting;
}

}  // namespace tandem::trace
