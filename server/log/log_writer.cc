#include "server/log/log_writer.h"

#include <cerrno>
#include <deque>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/thread_name.h"

namespace tandem {
namespace {

struct Line {
  std::string text;
  std::uint64_t dropped_before = 0;
};

// Whether all of it has been written. May take for ever.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Whoever shares the descriptor with us has made it so.
      pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LogWriter::Shared {
  Shared(int fd_given, std::size_t max_bytes, Notice notice_given)
      : fd(fd_given), max_waiting_bytes(max_bytes), notice(std::move(notice_given)) {}

  void Run() EXCLUDES(mu);
  // Waits for what is to be written: a line, or only the number of those dropped, which is not tried again before the
  // next line if it has just failed. False: the end has come.
  bool Next(bool failed, Line& line) EXCLUDES(mu);
  void Drop(const Line& line) EXCLUDES(mu);

  // Constant after construction.
  const int fd;
  const std::size_t max_waiting_bytes;
  const Notice notice;

  Mutex mu;
  CondVar more;
  CondVar idle;
  std::deque<Line> waiting GUARDED_BY(mu);
  std::size_t waiting_bytes GUARDED_BY(mu) = 0;
  bool writing GUARDED_BY(mu) = false;
  bool ended GUARDED_BY(mu) = false;
  std::uint64_t untold GUARDED_BY(mu) = 0;  // Dropped since the last line that was taken in.
  std::uint64_t dropped GUARDED_BY(mu) = 0;
};

bool LogWriter::Shared::Next(bool failed, Line& line) {
  const MutexLock lock(mu);
  writing = false;
  while (waiting.empty() && (untold == 0 || failed) && !ended) {
    idle.NotifyAll();
    more.Wait(mu);
  }
  if (ended) return false;
  writing = true;
  if (waiting.empty()) {
    line = {.text = {}, .dropped_before = std::exchange(untold, 0)};
    return true;
  }
  line = std::move(waiting.front());
  waiting.pop_front();
  waiting_bytes -= line.text.size();
  return true;
}

void LogWriter::Shared::Drop(const Line& line) {
  const std::uint64_t lines = line.text.empty() ? 0 : 1;
  const MutexLock lock(mu);
  dropped += lines;
  untold += lines + line.dropped_before;
}

void LogWriter::Shared::Run() {
  NameThread("log");
  Line line;
  bool failed = false;
  while (Next(failed, line)) {
    failed = line.dropped_before > 0 && !WriteAll(fd, notice(line.dropped_before));
    if (!failed) {
      line.dropped_before = 0;
      failed = !WriteAll(fd, line.text);
    }
    if (failed) Drop(line);
  }
}

LogWriter::LogWriter(int fd, std::size_t max_waiting_bytes, Notice notice)
    : shared_(std::make_shared<Shared>(fd, max_waiting_bytes, std::move(notice))) {
  // The thread hears no signal, not even that of a pipe which nobody reads any more.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([shared = shared_] { shared->Run(); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() {
  const MutexLock lock(shared_->mu);
  shared_->ended = true;
  shared_->more.NotifyAll();
}

void LogWriter::Write(std::string line) {
  Shared& s = *shared_;
  const MutexLock lock(s.mu);
  // After a drop only with half of the room free again: else every other line would be one about drops.
  const std::size_t room = s.untold > 0 ? s.max_waiting_bytes / 2 : s.max_waiting_bytes;
  if (s.waiting_bytes + line.size() > room) {
    ++s.dropped;
    ++s.untold;
    return;
  }
  s.waiting_bytes += line.size();
  s.waiting.push_back({std::move(line), std::exchange(s.untold, 0)});
  s.more.NotifyOne();
}

bool LogWriter::Flush(std::chrono::milliseconds at_most) {
  const RealClock& clock = RealClock::Instance();
  const MonotonicTime until = clock.Now() + at_most;
  Shared& s = *shared_;
  const MutexLock lock(s.mu);
  while (!s.waiting.empty() || s.writing) {
    const auto left = until - clock.Now();
    if (left <= std::chrono::nanoseconds(0)) return false;
    s.idle.WaitFor(s.mu, left);
  }
  return true;
}

std::uint64_t LogWriter::dropped() const {
  const MutexLock lock(shared_->mu);
  return shared_->dropped;
}

}  // namespace tandem
