#include "loadgen/metrics_watch.h"

#include <string>
#include <utility>

#include <sys/resource.h>

#include "api/base/format.h"
#include "loadgen/http_caller.h"
#include "loadgen/http_request.h"
#include "loadgen/socket_address.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kReadTimeout = std::chrono::seconds(2);
constexpr int kLowPriority = 10;

Result<ServerMetrics> Read(HttpCaller& caller, const MetricsSource& source, nanoseconds timeout) {
  const std::string place = HostAndPort(source.target.host, source.target.port);
  HttpRequest request{.head = Format("GET /metrics HTTP/1.1\r\nHost: {}\r\n", place), .parts = {}};
  if (!source.token.empty()) request.head += Format("Authorization: Bearer {}\r\n", source.token);
  request.head += "\r\n";
  request.keep_body = true;
  TANDEM_ASSIGN(const HttpAnswer answer, caller.Call(request, timeout));
  if (answer.status != 200) {
    return Fail(ErrorCode::kUnavailable, "GET /metrics at {}: HTTP {}", place, answer.status);
  }
  return ParseServerMetrics(answer.body);
}

}  // namespace

Result<ServerMetrics> ReadServerMetrics(const MetricsSource& source, nanoseconds timeout) {
  TANDEM_ASSIGN(const auto caller, HttpCaller::Create(source.target, source.tls));
  return Read(*caller, source, timeout);
}

TrainingWatch::TrainingWatch(MetricsSource source, nanoseconds interval)
    : source_(std::move(source)), interval_(interval), thread_([this] { Watch(); }) {}

TrainingWatch::~TrainingWatch() {
  Stop();
}

void TrainingWatch::Stop() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void TrainingWatch::Watch() {
  ::setpriority(PRIO_PROCESS, 0, kLowPriority);  // On Linux, of this thread alone.
  const auto caller = HttpCaller::Create(source_.target, source_.tls);
  if (!caller) return;
  const Clock& clock = RealClock::Instance();
  MonotonicTime next = clock.Now();
  for (bool last = false; !last;) {
    {
      const MutexLock lock(mu_);
      last = stopping_;
    }
    if (const auto metrics = Read(**caller, source_, kReadTimeout)) {
      const MutexLock lock(mu_);
      series_.Add(clock.Now(), metrics->jobs);
    }
    next += interval_;
    const MutexLock lock(mu_);
    for (MonotonicTime now = clock.Now(); !stopping_ && now < next; now = clock.Now()) wake_.WaitFor(mu_, next - now);
  }
}

std::optional<double> TrainingWatch::HeldLately() const {
  const MutexLock lock(mu_);
  return series_.HeldLately();
}

TrainingSeries TrainingWatch::Finish() {
  Stop();
  const MutexLock lock(mu_);
  return std::move(series_);
}

}  // namespace tandem::loadgen
