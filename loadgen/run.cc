#include "loadgen/run.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <sys/prctl.h>

#include "api/base/format.h"

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

// Why a request failed that did.
std::string ReasonOf(const RequestRecord& record) {
  if (record.outcome != TransportOutcome::kAnswered) return std::string(TransportOutcomeName(record.outcome));
  if (record.status >= 200 && record.status <= 299) return std::string(kWrongAnswer);
  return Format("HTTP {}", record.status);
}

// Every batch size that the arrivals name must have its request.
Status CheckSizes(const ModelLoad& model) {
  if (model.sizes.empty()) return {};
  const auto check = [&](std::uint32_t batch) -> Status {
    if (std::ranges::contains(model.sizes, batch, &SizedRequest::batch)) return {};
    return Invalid("'{}' is asked for a batch of {}, for which there is no request", model.model, batch);
  };
  if (model.arrivals.trace == nullptr) return check(1);
  for (const TraceRow& row : model.arrivals.trace->rows) TANDEM_TRY(check(row.size));
  return {};
}

// One run. Used by one thread.
class LoadRun {
 public:
  LoadRun(const LoadSpec& spec, Transport& transport, const Clock& clock, const LoadHooks& hooks)
      : spec_(spec), transport_(transport), clock_(clock), hooks_(hooks) {}

  Status Prepare();
  LoadReport Run();

 private:
  // One of the transport's requests.
  struct Place {
    std::size_t model = 0;
    std::uint32_t batch = 1;
    std::optional<AnswerCheck> check;
  };
  struct Stream {
    std::unique_ptr<ArrivalProcess> arrivals;
    std::optional<nanoseconds> next;
    std::size_t request = 0;                     // The transport's number of what is sent next.
    std::size_t only = 0;                        // That of the model's one request, unless it has
    std::map<std::uint32_t, std::size_t> sizes;  // several, by batch size.
    OutcomeCounts measured_counts;               // By when the answer came, not by when the request was due.
    OutcomeCounts interval_counts;
    LatencyHistogram interval_latency;
  };

  void AddPlace(std::size_t model, std::uint32_t batch, const WireRequest& request);
  // Takes the next arrival of a stream.
  static void Advance(Stream& stream);
  [[nodiscard]] bool Stopped() const { return hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed); }
  [[nodiscard]] bool Enough() const { return hooks_.enough != nullptr && hooks_.enough->load(); }
  // Sends what is due; true when it gave up early and more is due.
  bool SendDue(nanoseconds now);
  [[nodiscard]] nanoseconds NextWake(nanoseconds now) const;
  void Account(RequestRecord& record);
  // Whether an answer is another than it must be.
  bool IsWrong(RequestRecord& record, ModelReport& model);
  void Progress(nanoseconds now);
  void FinishRates(nanoseconds measured);

  const LoadSpec& spec_;
  Transport& transport_;
  const Clock& clock_;
  const LoadHooks& hooks_;
  std::vector<Place> places_;  // By the transport's number.
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
    TANDEM_TRY(CheckSizes(model));
    // Each model draws from its own sequence, so that another one in the mix does not change it.
    TANDEM_ASSIGN(auto arrivals, MakeArrivals(model.arrivals, seed++, end_));
    ModelReport report;
    report.model = model.model;
    report.name = model.name.empty() ? model.model : model.name;
    report.slo = model.slo;
    report.open_loop = arrivals->open_loop();
    report.timeline = TimeSeries(std::max(kNarrowestSlot, spec_.duration / kSlotsOfARun));
    report_.models.push_back(std::move(report));
    Stream stream;
    stream.arrivals = std::move(arrivals);
    stream.only = places_.size();
    if (model.sizes.empty()) AddPlace(streams_.size(), model.batch, model.request);
    for (const SizedRequest& sized : model.sizes) {
      stream.sizes[sized.batch] = places_.size();
      AddPlace(streams_.size(), sized.batch, sized.request);
    }
    Advance(stream);
    streams_.push_back(std::move(stream));
  }
  return {};
}

void LoadRun::AddPlace(std::size_t model, std::uint32_t batch, const WireRequest& request) {
  Place place{.model = model, .batch = batch, .check = {}};
  if (const auto& expect = spec_.models[model].expect) {
    const bool grpc = std::holds_alternative<GrpcInferRequest>(request);
    place.check.emplace(*expect, grpc ? AnswerForm::kGrpc : AnswerForm::kRest);
  }
  places_.push_back(std::move(place));
}

void LoadRun::Advance(Stream& stream) {
  stream.next = stream.arrivals->Next();
  if (!stream.next) return;
  stream.request = stream.sizes.empty() ? stream.only : stream.sizes.find(stream.arrivals->batch())->second;
}

LoadReport LoadRun::Run() {
  const PreciseSleep precise;
  const nanoseconds cpu_before = ThreadCpuTime();
  const nanoseconds own_cpu_before = transport_.OwnCpuTime();
  start_ = clock_.Now();
  nanoseconds now{0};
  std::vector<RequestRecord> finished;
  while (!Stopped()) {
    if (now < end_ && Enough()) end_ = now;
    const bool more_due = SendDue(now);
    if (now >= end_ && transport_.outstanding() == 0 && !more_due) break;
    finished.clear();
    transport_.Poll(start_ + (more_due ? now : NextWake(now)), finished);
    for (RequestRecord& record : finished) Account(record);
    now = clock_.Now() - start_;
    if (now - last_progress_ >= spec_.progress_interval) Progress(now);
  }
  const nanoseconds took = clock_.Now() - start_;
  report_.start = start_ + spec_.warmup;
  report_.partial = took < end_ || transport_.outstanding() > 0;
  report_.measured = std::clamp(took - spec_.warmup, nanoseconds(0), std::max(end_ - spec_.warmup, nanoseconds(0)));
  // Whichever thread is busier would be the bottleneck.
  const nanoseconds cpu = std::max(ThreadCpuTime() - cpu_before, transport_.OwnCpuTime() - own_cpu_before);
  report_.health.cpu_share =
      static_cast<double>(cpu.count()) / static_cast<double>(std::max<std::int64_t>(took.count(), 1));
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
      transport_.Send(stream.request, scheduled);
      Advance(stream);
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

bool LoadRun::IsWrong(RequestRecord& record, ModelReport& model) {
  std::optional<AnswerCheck>& check = places_[record.request].check;
  if (!check || !check->Due()) return false;
  const MonotonicTime begun = clock_.Now();
  std::optional<std::string> mismatch = check->Mismatch(std::move(record.body));
  report_.health.check.Record(clock_.Now() - begun);
  ++model.checked;
  if (!mismatch) return false;
  if (model.wrong++ == 0) model.first_wrong = *std::move(mismatch);
  return true;
}

void LoadRun::Account(RequestRecord& record) {
  const Place& place = places_[record.request];
  Stream& stream = streams_[place.model];
  ModelReport& model = report_.models[place.model];
  const nanoseconds latency = LatencyOf(record, model.open_loop);
  Outcome outcome = OutcomeOf(record, latency, model.slo);
  bool answered = outcome == Outcome::kOk || outcome == Outcome::kLate;
  if (answered && IsWrong(record, model)) {
    outcome = Outcome::kFailed;
    answered = false;
  }
  const std::string reason = outcome == Outcome::kFailed ? ReasonOf(record) : std::string();
  stream.interval_counts.Add(outcome);
  if (record.done >= start_ + spec_.warmup && record.done < start_ + end_) stream.measured_counts.Add(outcome);
  if (answered) stream.interval_latency.Record(latency);
  if (!model.open_loop) {
    const bool lost = record.outcome != TransportOutcome::kAnswered;
    stream.arrivals->Completed(record.done - start_ + (lost ? kPauseAfterLoss : nanoseconds(0)));
    if (!stream.next) Advance(stream);
  }
  const bool warmup = record.scheduled < start_ + spec_.warmup;
  if (hooks_.on_request) {
    hooks_.on_request({.record = record,
                       .start = start_,
                       .model = place.model,
                       .batch = place.batch,
                       .warmup = warmup,
                       .outcome = outcome,
                       .latency = latency,
                       .reason = reason});
  }
  if (warmup) return;

  model.counts.Add(outcome);
  model.timeline.Record(record.scheduled - start_ - spec_.warmup, outcome, latency);
  if (answered) model.latency.Record(latency);
  if (outcome == Outcome::kRejected) model.rejection_latency.Record(latency);
  if (outcome == Outcome::kFailed) ++model.failures[reason];
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

std::vector<const WireRequest*> RequestsOf(const LoadSpec& spec) {
  std::vector<const WireRequest*> requests;
  for (const ModelLoad& model : spec.models) {
    if (model.sizes.empty()) requests.push_back(&model.request);
    for (const SizedRequest& sized : model.sizes) requests.push_back(&sized.request);
  }
  return requests;
}

Result<LoadReport> DriveLoad(const LoadSpec& spec, Transport& transport, const Clock& clock, const LoadHooks& hooks) {
  LoadRun run(spec, transport, clock, hooks);
  TANDEM_TRY(run.Prepare());
  return run.Run();
}

}  // namespace tandem::loadgen
