#include "loadgen/run.h"

#include <algorithm>
#include <ctime>
#include <format>
#include <memory>
#include <utility>

#include <sys/prctl.h>

#include "loadgen/http_transport.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

// How soon the stop flag is noticed.
constexpr nanoseconds kLongestWait = std::chrono::milliseconds(50);
// Sends between two looks at the sockets, so that answers are timed while a backlog is worked off.
constexpr int kSendsPerPoll = 64;
// Of the timeline: fine enough to see a stall, wide enough for a percentile.
constexpr nanoseconds kNarrowestSlot = std::chrono::milliseconds(100);
constexpr int kSlotsOfARun = 100;
// A closed loop against a server that refuses connections must not spin.
constexpr nanoseconds kPauseAfterLoss = std::chrono::milliseconds(10);

nanoseconds ThreadCpuTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Lets the thread sleep to the nanosecond instead of the usual 50 µs late, and undoes that at the end.
class PreciseSleep {
 public:
  PreciseSleep() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1UL); }
  ~PreciseSleep() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
  }
  PreciseSleep(const PreciseSleep&) = delete;
  PreciseSleep& operator=(const PreciseSleep&) = delete;

 private:
  const int before_;
};

// One run. Used by one thread.
class LoadRun {
 public:
  LoadRun(const LoadSpec& spec, Transport& transport, const Clock& clock, const LoadHooks& hooks)
      : spec_(spec), transport_(transport), clock_(clock), hooks_(hooks) {}

  Status Prepare();
  LoadReport Run();

 private:
  struct Stream {
    std::unique_ptr<ArrivalProcess> arrivals;
    std::optional<nanoseconds> next;
    OutcomeCounts measured_counts;  // By when the answer came, not by when the request was due.
    OutcomeCounts interval_counts;
    LatencyHistogram interval_latency;
  };

  [[nodiscard]] bool Stopped() const { return hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed); }
  // Sends what is due; true when it gave up early and more is due.
  bool SendDue(nanoseconds now);
  [[nodiscard]] nanoseconds NextWake(nanoseconds now) const;
  void Account(const RequestRecord& record);
  void Progress(nanoseconds now);
  void FinishRates(nanoseconds measured);

  const LoadSpec& spec_;
  Transport& transport_;
  const Clock& clock_;
  const LoadHooks& hooks_;
  std::vector<Stream> streams_;
  LoadReport report_;
  MonotonicTime start_;
  nanoseconds end_{0};
  nanoseconds last_progress_{0};
};

Status LoadRun::Prepare() {
  if (spec_.models.empty()) return Invalid("there is no model to load");
  if (spec_.duration <= nanoseconds(0)) return Invalid("the duration must be above 0");
  if (spec_.warmup < nanoseconds(0)) return Invalid("the warm-up must not be below 0");
  if (spec_.progress_interval <= nanoseconds(0)) return Invalid("the progress interval must be above 0");
  end_ = spec_.warmup + spec_.duration;
  std::uint64_t seed = spec_.seed;
  for (const ModelLoad& model : spec_.models) {
    if (model.slo && *model.slo <= nanoseconds(0)) return Invalid("the SLO of '{}' must be above 0", model.model);
    // Each model draws from its own sequence, so that another one in the mix does not change it.
    TANDEM_ASSIGN(auto arrivals, MakeArrivals(model.arrivals, seed++, end_));
    ModelReport report;
    report.model = model.model;
    report.slo = model.slo;
    report.open_loop = arrivals->open_loop();
    report.timeline = TimeSeries(std::max(kNarrowestSlot, spec_.duration / kSlotsOfARun));
    report_.models.push_back(std::move(report));
    Stream stream;
    stream.next = arrivals->Next();
    stream.arrivals = std::move(arrivals);
    streams_.push_back(std::move(stream));
  }
  return {};
}

LoadReport LoadRun::Run() {
  const PreciseSleep precise;
  const nanoseconds cpu_before = ThreadCpuTime();
  start_ = clock_.Now();
  nanoseconds now{0};
  std::vector<RequestRecord> finished;
  while (!Stopped()) {
    const bool more_due = SendDue(now);
    if (now >= end_ && transport_.outstanding() == 0 && !more_due) break;
    finished.clear();
    transport_.Poll(start_ + (more_due ? now : NextWake(now)), finished);
    for (const RequestRecord& record : finished) Account(record);
    now = clock_.Now() - start_;
    if (now - last_progress_ >= spec_.progress_interval) Progress(now);
  }
  const nanoseconds took = clock_.Now() - start_;
  report_.partial = took < end_ || transport_.outstanding() > 0;
  report_.measured = std::clamp(took - spec_.warmup, nanoseconds(0), spec_.duration);
  const auto cpu = static_cast<double>((ThreadCpuTime() - cpu_before).count());
  report_.health.cpu_share = cpu / static_cast<double>(std::max<std::int64_t>(took.count(), 1));
  FinishRates(report_.measured);
  return std::move(report_);
}

bool LoadRun::SendDue(nanoseconds now) {
  int sent = 0;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    while (stream.next && *stream.next <= now && *stream.next < end_) {
      if (sent++ == kSendsPerPoll) return true;
      const MonotonicTime scheduled = start_ + *stream.next;
      if (*stream.next >= spec_.warmup) ++report_.models[i].scheduled;
      transport_.Send(i, scheduled);
      stream.next = stream.arrivals->Next();
    }
  }
  return false;
}

nanoseconds LoadRun::NextWake(nanoseconds now) const {
  nanoseconds wake = std::min(now + kLongestWait, last_progress_ + spec_.progress_interval);
  if (now < end_) wake = std::min(wake, end_);
  for (const Stream& stream : streams_) {
    if (stream.next && *stream.next < end_) wake = std::min(wake, *stream.next);
  }
  return wake;
}

void LoadRun::Account(const RequestRecord& record) {
  Stream& stream = streams_[record.request];
  ModelReport& model = report_.models[record.request];
  const nanoseconds latency = LatencyOf(record, model.open_loop);
  const Outcome outcome = OutcomeOf(record, latency, model.slo);
  const bool answered = outcome == Outcome::kOk || outcome == Outcome::kLate;
  stream.interval_counts.Add(outcome);
  if (record.done >= start_ + spec_.warmup && record.done < start_ + end_) stream.measured_counts.Add(outcome);
  if (answered) stream.interval_latency.Record(latency);
  if (!model.open_loop) {
    const bool lost = record.outcome != TransportOutcome::kAnswered;
    stream.arrivals->Completed(record.done - start_ + (lost ? kPauseAfterLoss : nanoseconds(0)));
    if (!stream.next) stream.next = stream.arrivals->Next();
  }
  const bool warmup = record.scheduled < start_ + spec_.warmup;
  if (hooks_.on_request) {
    hooks_.on_request({.record = record, .start = start_, .warmup = warmup, .outcome = outcome, .latency = latency});
  }
  if (warmup) return;

  model.counts.Add(outcome);
  model.timeline.Record(record.scheduled - start_ - spec_.warmup, outcome, latency);
  if (answered) model.latency.Record(latency);
  if (outcome == Outcome::kRejected) model.rejection_latency.Record(latency);
  if (outcome == Outcome::kFailed) {
    ++model.failures[record.outcome == TransportOutcome::kAnswered ? std::format("HTTP {}", record.status)
                                                                   : std::string(TransportOutcomeName(record.outcome))];
  }
  if (model.open_loop) report_.health.send_lag.Record(record.submitted - record.scheduled);
  if (record.queued) ++report_.health.queued;
}

void LoadRun::Progress(nanoseconds now) {
  if (hooks_.on_progress) {
    LoadProgress progress{.elapsed = now, .planned = end_, .outstanding = transport_.outstanding(), .models = {}};
    const double seconds = std::chrono::duration<double>(now - last_progress_).count();
    for (const Stream& stream : streams_) {
      const OutcomeCounts& counts = stream.interval_counts;
      progress.models.push_back({.counts = counts,
                                 .rate = static_cast<double>(counts.ok + counts.late) / seconds,
                                 .p50 = stream.interval_latency.Percentile(50),
                                 .p99 = stream.interval_latency.Percentile(99)});
    }
    hooks_.on_progress(progress);
  }
  for (Stream& stream : streams_) {
    stream.interval_counts = {};
    stream.interval_latency.Clear();
  }
  last_progress_ = now;
}

void LoadRun::FinishRates(nanoseconds measured) {
  const double seconds = std::chrono::duration<double>(measured).count();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    ModelReport& model = report_.models[i];
    const OutcomeCounts& counts = streams_[i].measured_counts;
    if (seconds > 0) {
      model.offered_rate = static_cast<double>(model.scheduled) / seconds;
      model.achieved_rate = static_cast<double>(counts.ok + counts.late) / seconds;
      model.goodput = static_cast<double>(counts.ok) / seconds;
    }
    if (model.scheduled > 0) {
      model.attainment = static_cast<double>(model.counts.ok) / static_cast<double>(model.scheduled);
    }
  }
}

}  // namespace

Result<LoadReport> DriveLoad(const LoadSpec& spec, Transport& transport, const Clock& clock, const LoadHooks& hooks) {
  LoadRun run(spec, transport, clock, hooks);
  TANDEM_TRY(run.Prepare());
  return run.Run();
}

Result<LoadReport> RunLoad(const LoadSpec& spec, const LoadHooks& hooks) {
  HttpTransportOptions options{.host = spec.host,
                               .port = spec.port,
                               .max_connections = spec.connections,
                               .request_timeout = spec.request_timeout};
  std::size_t users = 0;
  std::vector<HttpRequest> requests;
  for (const ModelLoad& model : spec.models) {
    requests.push_back(model.request);
    const bool closed = model.arrivals.kind == ArrivalKind::kClosed;
    if (closed) users += static_cast<std::size_t>(std::max(model.arrivals.users, 0));
  }
  options.max_connections = std::max(options.max_connections, users);
  TANDEM_ASSIGN(auto transport, HttpTransport::Create(options, std::move(requests), RealClock::Instance()));
  return DriveLoad(spec, *transport, RealClock::Instance(), hooks);
}

}  // namespace tandem::loadgen
