#include "colocation/turn_book.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

constexpr MonotonicTime kNever = MonotonicTime::max();
// A trainer says how many steps it has; no job runs for longer than this.
constexpr nanoseconds kMostRemaining = std::chrono::hours(24 * 365 * 10);

}  // namespace

std::string_view TurnStateName(TurnState state) {
  switch (state) {
    case TurnState::kAway: return "loads";
    case TurnState::kWaits: return "waits";
    case TurnState::kRuns: return "runs";
    case TurnState::kLeaving: return "leaves";
    case TurnState::kDone: return "done";
  }
  return "";
}

std::optional<nanoseconds> TurnBook::Job::step() const {
  // By what it had run when it told: else an iteration that does not end would make all of them longer, and be
  // waited for the more the longer it takes.
  if (!first_done || done <= *first_done || done_ran <= first_ran) return std::nullopt;
  return (done_ran - first_ran) / (done - *first_done);
}

std::optional<nanoseconds> TurnBook::Job::remaining() const {
  const auto each = step();
  if (!each) return std::nullopt;
  const std::int64_t left = std::max<std::int64_t>(total - done, 0);
  if (each->count() > 0 && left > kMostRemaining.count() / each->count()) return kMostRemaining;
  return *each * left;
}

TurnBook::Job* TurnBook::At(SessionId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

void TurnBook::Count(Job& job, MonotonicTime now) {
  const nanoseconds passed = std::max<nanoseconds>(now - std::exchange(job.since, now), nanoseconds(0));
  if (job.paused) return;
  if (job.has_turn()) {
    job.ran += passed;
    ledger_.Ran(job.who.session, passed, job.who.bytes);
  } else if (job.state == TurnState::kWaits) {
    job.waited += passed;
  }
}

void TurnBook::CountAll(MonotonicTime now) {
  for (auto& [id, job] : jobs_) Count(job, now);
}

void TurnBook::Add(const TurnJob& job, MonotonicTime now) {
  CountAll(now);
  jobs_[job.session] = {.who = job, .since = now, .stop_at = kNever, .left = kNever};
  ledger_.Add(job.session);
}

void TurnBook::Remove(SessionId job) {
  jobs_.erase(job);
  ledger_.Remove(job);
}

void TurnBook::SetPaused(SessionId job, bool paused, MonotonicTime now) {
  Job* const one = At(job);
  if (one == nullptr || one->paused == paused) return;
  CountAll(now);
  one->paused = paused;
  if (paused) return;
  // It is owed nothing for the time that it was away.
  ledger_.Remove(job);
  ledger_.Add(job);
  if (one->left != kNever) one->left = now;
}

void TurnBook::SetProgress(SessionId job, std::int64_t done, std::int64_t total, MonotonicTime now) {
  Job* const one = At(job);
  if (one == nullptr) return;
  Count(*one, now);
  const std::int64_t before = one->done;
  one->done = std::clamp<std::int64_t>(done, 0, std::max<std::int64_t>(total, 0));
  one->total = std::max<std::int64_t>(total, 0);
  if (one->done > before) one->done_ran = one->ran;
  if (one->first_done) return;
  one->first_done = one->done;
  one->first_ran = one->ran;
}

void TurnBook::Recall(SessionId job) {
  Job* const one = At(job);
  if (one != nullptr && one->state == TurnState::kRuns) one->recalled = true;
}

void TurnBook::Saw(SessionId job, bool waits, bool done, MonotonicTime now) {
  Job* const one = At(job);
  if (one == nullptr || one->state == TurnState::kDone) return;
  const bool waited = one->state == TurnState::kWaits;
  // One that was told to go on, and has not read it yet, has its turn all the same.
  if (!done && (!waits || waited || one->state == TurnState::kRuns)) return;
  Count(*one, now);
  one->state = done ? TurnState::kDone : TurnState::kWaits;
  one->overdue = false;
  one->stop_at = one->left = kNever;
}

void TurnBook::Excuse(SessionId job, nanoseconds stopped) {
  Job* const one = At(job);
  if (one != nullptr && one->left != kNever) one->left += std::max(stopped, nanoseconds(0));
}

MonotonicTime TurnBook::OverdueAt(const Job& job) const {
  if (job.state != TurnState::kLeaving || job.paused || job.overdue) return kNever;
  const nanoseconds own = std::min<nanoseconds>(job.step().value_or(nanoseconds(0)), std::chrono::hours(1));
  return job.left + std::max<nanoseconds>(kPatience, kPatientIterations * own);
}

void TurnBook::FindOverdue(MonotonicTime now) {
  for (auto& [id, job] : jobs_) {
    if (OverdueAt(job) <= now) job.overdue = true;
  }
}

bool TurnBook::IsReady(const Job& job) const {
  return job.ready() && std::ranges::none_of(jobs_, [&job](const auto& entry) {
           const Job& other = entry.second;
           return &other != &job && other.who.lane == job.who.lane && other.has_turn() && !other.in_the_way();
         });
}

std::vector<JobView> TurnBook::Snapshot() const {
  std::vector<JobView> views;
  views.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) {
    views.push_back({.session = id,
                     .lane = job.who.lane,
                     .order = job.who.order,
                     .priority = job.who.priority,
                     .remaining = job.remaining(),
                     .had = ledger_.Had(id),
                     .width = job.who.width,
                     .ready = IsReady(job)});
  }
  return views;
}

bool TurnBook::MayGo(const Job& job, const std::vector<SessionId>& wanted) const {
  return std::ranges::none_of(jobs_, [&](const auto& entry) {
    const Job& other = entry.second;
    if (&other == &job || !other.has_turn()) return false;
    // What somebody has in a lane stays his until he comes to a boundary, whatever holds him.
    if (other.who.lane == job.who.lane) return true;
    return other.in_the_way() && !std::ranges::contains(wanted, other.who.session);
  });
}

std::vector<TurnBook::Order> TurnBook::Decide(const JobPolicy& policy, MonotonicTime now) {
  CountAll(now);
  FindOverdue(now);
  const std::vector<JobView> views = Snapshot();
  std::vector<SessionId> wanted;
  for (const JobTurn& turn : policy.Decide({views})) {
    if (turn.session) wanted.push_back(*turn.session);
  }
  const bool others = std::ranges::any_of(
      jobs_, [&](const auto& entry) { return IsReady(entry.second) && !std::ranges::contains(wanted, entry.first); });
  std::vector<Order> orders;
  for (auto& [id, job] : jobs_) {
    if (job.state != TurnState::kRuns) continue;
    if (!others) job.stop_at = kNever;
    if (others && job.stop_at == kNever) job.stop_at = now + kLeastTurn;
    if (std::ranges::contains(wanted, id) && job.stop_at > now && !job.recalled) continue;
    job.recalled = false;
    job.state = TurnState::kLeaving;
    job.left = now;
    orders.push_back({.session = id, .go = false});
  }
  for (const SessionId id : wanted) {
    Job& job = jobs_.at(id);
    if (job.state != TurnState::kWaits || !MayGo(job, wanted)) continue;
    job.state = TurnState::kRuns;
    job.stop_at = others ? now + kLeastTurn : kNever;
    ++job.turns;
    orders.push_back({.session = id, .go = true});
  }
  return orders;
}

std::optional<MonotonicTime> TurnBook::Due() const {
  MonotonicTime due = kNever;
  for (const auto& [id, job] : jobs_) {
    if (job.state == TurnState::kRuns) due = std::min(due, job.stop_at);
    due = std::min(due, OverdueAt(job));
  }
  return due == kNever ? std::nullopt : std::optional(due);
}

TurnBook::View TurnBook::ViewOf(const Job& job, MonotonicTime now) const {
  View view{.job = job.who,
            .state = job.state,
            .paused = job.paused,
            .overdue = job.overdue,
            .turns = job.turns,
            .ran = job.ran,
            .waited = job.waited,
            .remaining = job.remaining()};
  if (job.state == TurnState::kLeaving) view.leaving = std::max<nanoseconds>(now - job.left, nanoseconds(0));
  const nanoseconds passed = std::max<nanoseconds>(now - job.since, nanoseconds(0));
  if (job.paused) return view;
  if (job.has_turn()) view.ran += passed;
  if (job.state == TurnState::kWaits) view.waited += passed;
  return view;
}

std::vector<TurnBook::View> TurnBook::Jobs(MonotonicTime now) const {
  std::vector<View> views;
  for (const auto& [id, job] : jobs_) views.push_back(ViewOf(job, now));
  std::ranges::sort(views, {}, [](const View& view) { return view.job.order; });
  return views;
}

std::optional<TurnBook::View> TurnBook::Find(SessionId job, MonotonicTime now) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  return ViewOf(found->second, now);
}

}  // namespace tandem
