#include "colocation/job_turns.h"

#include <algorithm>
#include <array>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/base/thread_name.h"

namespace tandem {
namespace {

using std::chrono::nanoseconds;

// What an event is of is told by a number: a trainer's bell by its session, its end by that and this bit.
constexpr std::uint64_t kEnded = std::uint64_t{1} << 63U;
constexpr std::uint64_t kNews = ~std::uint64_t{0};

nanoseconds StoppedBy(const TrainerLease* arbiter) {
  nanoseconds sum{0};
  if (arbiter == nullptr) return sum;
  for (const auto& [reason, time] : arbiter->HeldTimes()) sum += time;
  return sum;
}

bool HasEnded(int pidfd) {
  pollfd end{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, /*timeout=*/0) == 1;
}

}  // namespace

Result<std::unique_ptr<JobTurns>> JobTurns::Create(const Clock& clock, std::unique_ptr<const JobPolicy> policy,
                                                   FlightRecorder* recorder) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int news = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll < 0 || news < 0) {
    if (epoll >= 0) ::close(epoll);
    if (news >= 0) ::close(news);
    return Fail(ErrorCode::kUnavailable, "no descriptors for the turns of training jobs can be had");
  }
  return std::unique_ptr<JobTurns>(new JobTurns(clock, std::move(policy), recorder, epoll, news));
}

JobTurns::JobTurns(const Clock& clock, std::unique_ptr<const JobPolicy> policy, FlightRecorder* recorder, int epoll,
                   int news)
    : clock_(clock), recorder_(recorder), epoll_(epoll), news_(news), policy_(std::move(policy)) {
  Watch(news_, kNews);
  thread_ = std::thread([this] { Run(); });
}

JobTurns::~JobTurns() {
  stopping_.store(true);
  TellNews();
  thread_.join();
  ::close(epoll_);
  ::close(news_);
}

void JobTurns::Watch(int fd, std::uint64_t what) const {
  // Each ring of a bell is told once, and nothing is read: whoever else has it could make that wait for ever.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = what}};
  // Where there is no memory for it the trainer is looked at when others are, and once a second at the latest.
  if (fd >= 0) (void)::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void JobTurns::TellNews() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(news_, &one, sizeof one);
}

std::unique_ptr<TurnLease> JobTurns::Admit(const TurnTaker& taker) {
  const SessionId session = taker.job.session;
  {
    const MutexLock lock(mu_);
    taker.board->SetTurn(Turn::kWait);
    book_.Add(taker.job, clock_.Now());
    takers_[session] = {.who = taker};
    Watch(taker.bell, std::to_underlying(session));
    Watch(taker.pidfd, std::to_underlying(session) | kEnded);
  }
  TellNews();
  return std::unique_ptr<TurnLease>(new TurnLease(*this, session));
}

void JobTurns::Forget(SessionId session) {
  {
    const MutexLock lock(mu_);
    const auto found = takers_.find(session);
    for (const int fd : {found->second.who.bell, found->second.who.pidfd}) {
      if (fd >= 0) (void)::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    }
    NoteEnd(found->second, clock_.Now());
    takers_.erase(found);
    book_.Remove(session);
  }
  TellNews();
}

Result<int> JobTurns::OpenLane(LaneId lane) {
  const MutexLock lock(mu_);
  OpenedLane& opened = lanes_[lane];
  if (opened.pages == nullptr) {
    TANDEM_ASSIGN(opened.pages, LanePages::Create());
  }
  return opened.pages->fd();
}

void JobTurns::SetLane(LaneId lane, std::uint64_t bytes, bool shared) {
  const MutexLock lock(mu_);
  const auto opened = lanes_.find(lane);
  if (opened == lanes_.end() || opened->second.pages == nullptr || opened->second.target == bytes) return;
  if (!shared && opened->second.target == 0) return;
  LanePages& pages = *opened->second.pages;
  if (bytes > pages.length() && !pages.SetLength(bytes)) return;
  opened->second.target = bytes;
  for (auto& [session, taker] : takers_) {
    if (taker.who.job.lane != lane) continue;
    taker.who.board->SetLane(bytes);
    // Who runs there alone would run on, and keep what is to be cut off.
    if (bytes < pages.length()) book_.Recall(session);
  }
  if (bytes < pages.length()) TellNews();
}

void JobTurns::CloseLanesBut(const std::set<LaneId>& kept) {
  const MutexLock lock(mu_);
  std::erase_if(lanes_, [&kept](const auto& lane) { return !kept.contains(lane.first); });
}

void JobTurns::Prepare(const Taker& taker) {
  const auto found = lanes_.find(taker.who.job.lane);
  if (found == lanes_.end() || found->second.target == 0) return;
  OpenedLane& lane = found->second;
  // Nobody else has anything in it now. What is cut off is given back to the system.
  if (lane.pages->length() != lane.target) (void)lane.pages->SetLength(lane.target);
  // Whoever began there before it was shared is not known.
  if (lane.owner != taker.who.owner) lane.pages->Clear();
  lane.owner = taker.who.owner;
  taker.who.board->SetLane(lane.pages->length());
}

void JobTurns::AnswerGrowth(const Taker& taker) {
  const auto needed = taker.who.board->LaneNeeded();
  if (!needed) return;
  const auto found = lanes_.find(taker.who.job.lane);
  std::uint64_t length = 0;
  if (found != lanes_.end() && found->second.target > 0) {
    OpenedLane& lane = found->second;
    const std::uint64_t longer = taker.who.grow ? taker.who.grow(*needed) : 0;
    if (longer > lane.pages->length() && lane.pages->SetLength(longer)) lane.target = longer;
    length = lane.pages->length();
  }
  taker.who.board->AnswerLane(length);
}

void JobTurns::SetPolicy(std::unique_ptr<const JobPolicy> policy) {
  {
    const MutexLock lock(mu_);
    policy_ = std::move(policy);
  }
  TellNews();
}

TurnsState JobTurns::State() const {
  const MutexLock lock(mu_);
  return {.policy = policy_->name(),
          .jobs = book_.Jobs(clock_.Now()),
          .switches = switches_,
          .switch_times = switch_times_};
}

void JobTurns::LookAt(SessionId session, Taker& taker, MonotonicTime now) {
  AnswerGrowth(taker);
  const TurnSigns signs = taker.who.board->TurnTold();
  if (taker.ended) {
    if (!signs.done) return;
    book_.Saw(session, false, true, now);
    return NoteEnd(taker, now);
  }
  if (taker.after && (signs.began || signs.waits)) {
    // Both tell their times themselves: none is before the boundary, or later than now.
    if (signs.began) switch_times_.Add(std::clamp(signs.began_at, std::min(*taker.after, now), now) - *taker.after);
    taker.after.reset();
  }
  const auto before = book_.Find(session, now);
  book_.Saw(session, signs.waits, signs.done, now);
  const auto after = book_.Find(session, now);
  if (after->state == before->state) {
    if (after->state != TurnState::kLeaving) return;
    const nanoseconds stopped = StoppedBy(taker.who.ruled);
    book_.Excuse(session, stopped - std::exchange(taker.stopped, stopped));
    return;
  }
  if (before->state == TurnState::kRuns || before->state == TurnState::kLeaving) {
    // One that needs no turn any more tells no time.
    const MonotonicTime came = signs.done ? now : signs.left_at;
    left_ = {session, std::clamp(came, std::min(taker.told, now), now)};
    NoteEnd(taker, left_->second);
  }
  if (taker.who.ruled != nullptr && after->state == TurnState::kWaits) taker.who.ruled->SetWaiting(true);
}

void JobTurns::Look(MonotonicTime now) {
  for (auto& [session, taker] : takers_) LookAt(session, taker, now);
}

void JobTurns::Give(const TurnBook::Order& order, MonotonicTime now) {
  Taker& taker = takers_.at(order.session);
  if (taker.ended) return;
  if (!order.go) {
    taker.told = now;
    taker.stopped = StoppedBy(taker.who.ruled);
    return taker.who.board->SetTurn(Turn::kWait);
  }
  if (left_ && left_->first != order.session) {
    ++switches_;
    taker.after = left_->second;
  }
  Prepare(taker);
  // First it hears whether it is held, so that it does not run when nobody is to.
  if (taker.who.ruled != nullptr) taker.who.ruled->SetWaiting(false);
  taker.who.board->SetTurn(Turn::kGo);
  NoteBegin(taker, now);
}

void JobTurns::NoteBegin(Taker& taker, MonotonicTime now) {
  taker.began = now;
  if (recorder_ == nullptr) return;
  recorder_->Write(TurnBegan{
      .at = now, .job = std::to_underlying(taker.who.job.session), .lane = std::to_underlying(taker.who.job.lane)});
}

void JobTurns::NoteEnd(Taker& taker, MonotonicTime left) {
  const auto began = std::exchange(taker.began, std::nullopt);
  if (!began || recorder_ == nullptr) return;
  recorder_->Write(TurnEnded{.at = std::max(left, *began),
                             .job = std::to_underlying(taker.who.job.session),
                             .lane = std::to_underlying(taker.who.job.lane),
                             .began = *began});
}

std::optional<MonotonicTime> JobTurns::Decide() {
  const MutexLock lock(mu_);
  const MonotonicTime now = clock_.Now();
  Look(now);
  for (const TurnBook::Order& order : book_.Decide(*policy_, now)) Give(order, now);
  left_.reset();
  return book_.Due();
}

void JobTurns::Hear(std::optional<MonotonicTime> until) {
  constexpr std::size_t kMost = 64;
  std::array<epoll_event, kMost> events{};
  // Where a bell could not be watched, or was silenced by somebody else, nobody waits for longer.
  constexpr std::chrono::milliseconds kBetweenLooks{1'000};
  int wait = static_cast<int>(kBetweenLooks.count());
  {
    const MutexLock lock(mu_);
    if (takers_.empty()) wait = -1;
  }
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - clock_.Now());
    wait = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kBetweenLooks.count()));
  }
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t what = events[static_cast<std::size_t>(i)].data.u64;
    if (what == kNews || (what & kEnded) == 0) continue;
    const MutexLock lock(mu_);
    const auto taker = takers_.find(SessionId{what & ~kEnded});
    // The event may be of the trainer before, of the same job.
    if (taker == takers_.end() || !HasEnded(taker->second.who.pidfd)) continue;
    taker->second.ended = true;
    const MonotonicTime now = clock_.Now();
    book_.Saw(taker->first, false, true, now);
    NoteEnd(taker->second, now);
  }
}

void JobTurns::Run() {
  NameThread("turns");
  while (!stopping_.load()) Hear(Decide());
}

void TurnLease::SetPaused(bool paused) {
  {
    const MutexLock lock(turns_.mu_);
    turns_.book_.SetPaused(session_, paused, turns_.clock_.Now());
  }
  turns_.TellNews();
}

void TurnLease::SetProgress(std::int64_t done, std::int64_t total) {
  // Nobody is told: it counts at the next boundary.
  const MutexLock lock(turns_.mu_);
  turns_.book_.SetProgress(session_, done, total, turns_.clock_.Now());
}

void TurnLease::End() {
  {
    const MutexLock lock(turns_.mu_);
    JobTurns::Taker& taker = turns_.takers_.at(session_);
    if (taker.ended) return;
    taker.ended = true;
    taker.who.board->SetTurn(Turn::kEnd);
    // One that is in an iteration ends that, and has its lane until then.
    const MonotonicTime now = turns_.clock_.Now();
    const auto view = turns_.book_.Find(session_, now);
    const bool between = view && (view->state == TurnState::kWaits || view->state == TurnState::kAway);
    if (between) turns_.book_.Saw(session_, false, true, now);
  }
  turns_.TellNews();
}

bool TurnLease::Restore() {
  const MutexLock lock(turns_.mu_);
  return turns_.takers_.at(session_).who.board->RestoreTurn();
}

std::optional<nanoseconds> TurnLease::blocks() const {
  const MutexLock lock(turns_.mu_);
  const MonotonicTime now = turns_.clock_.Now();
  const auto view = turns_.book_.Find(session_, now);
  if (!view || !view->overdue) return std::nullopt;
  const auto waits = [&](const TurnBook::View& other) {
    return other.job.session != session_ && other.job.lane == view->job.lane && other.state != TurnState::kDone;
  };
  if (!std::ranges::any_of(turns_.book_.Jobs(now), waits)) return std::nullopt;
  return view->leaving;
}

bool TurnLease::in_lane() const {
  const MutexLock lock(turns_.mu_);
  const auto lane = turns_.lanes_.find(turns_.takers_.at(session_).who.job.lane);
  return lane != turns_.lanes_.end() && lane->second.target > 0;
}

bool TurnLease::waits() const {
  const MutexLock lock(turns_.mu_);
  const auto view = turns_.book_.Find(session_, turns_.clock_.Now());
  return view && view->state == TurnState::kWaits;
}

std::chrono::nanoseconds TurnLease::waited() const {
  const MutexLock lock(turns_.mu_);
  const auto view = turns_.book_.Find(session_, turns_.clock_.Now());
  return view ? view->waited : std::chrono::nanoseconds(0);
}

}  // namespace tandem
