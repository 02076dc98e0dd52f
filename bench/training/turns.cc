#include "bench/training/turns.h"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <sys/socket.h>

#include "api/base/format.h"

namespace tandem::bench {
namespace {

constexpr std::size_t kLongestLine = 200;
constexpr const char* kReady = "ready";

bool SendLine(int fd, const std::string& line) {
  const std::string text = line + "\n";
  return ::send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::optional<std::string> ReceiveLine(int fd) {
  std::string line;
  for (char c = 0; line.size() < kLongestLine;) {
    const ssize_t got = ::recv(fd, &c, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

}  // namespace

bool Turns::Await() {
  const auto line = ReceiveLine(fd_);
  if (!line) return false;
  std::istringstream words(*line);
  double seconds = 0;
  if (!(words >> seconds >> most_steps_)) return false;
  length_ = std::chrono::duration<double>(seconds);
  turn_ = {};
  ++number_;
  last_op_.reset();
  began_ = RealClock::Instance().Now();
  return true;
}

bool Turns::StepDone() {
  if (!begun_) {
    begun_ = true;
    return SendLine(fd_, kReady) && Await();
  }
  const std::chrono::duration<double> passed = RealClock::Instance().Now() - began_;
  ++turn_.steps;
  if (passed < length_ && turn_.steps < most_steps_) return true;
  return SendLine(fd_, Format("{} {} {}", turn_.steps, passed.count(), turn_.longest_op)) && Await();
}

void Turns::OpBegins() {
  const MonotonicTime now = RealClock::Instance().Now();
  if (last_op_) {
    turn_.longest_op = std::max(turn_.longest_op, std::chrono::duration<double>(now - *last_op_).count());
  }
  last_op_ = now;
}

Status AwaitFirstStep(int fd) {
  if (ReceiveLine(fd) == kReady) return {};
  return Fail(ErrorCode::kUnavailable, "its first step failed");
}

Result<Turn> TakeTurn(int fd, double seconds, std::int64_t steps) {
  if (!SendLine(fd, Format("{} {}", seconds, steps))) return Fail(ErrorCode::kUnavailable, "it has ended");
  const auto line = ReceiveLine(fd);
  if (!line) return Fail(ErrorCode::kUnavailable, "it ended in a turn");
  std::istringstream words(*line);
  Turn turn;
  if (!(words >> turn.steps >> turn.seconds >> turn.longest_op) || turn.steps <= 0 || turn.seconds <= 0) {
    return Fail(ErrorCode::kUnavailable, "it answered '{}'", *line);
  }
  return turn;
}

}  // namespace tandem::bench
