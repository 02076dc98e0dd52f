#include "colocation/simulation/serving.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/base/duration.h"
#include "colocation/batch_policy.h"
#include "colocation/simulation/thread_rules.h"
#include "colocation/work_forecast.h"

namespace tandem::simulation {
namespace {

using std::chrono::nanoseconds;

nanoseconds Typical(const LatencyModel& latency, std::size_t batch) {
  const auto run = latency.Predict(static_cast<std::int64_t>(batch));
  return run ? run->typical : nanoseconds(0);
}

nanoseconds Sum(const std::vector<Step>& steps) {
  nanoseconds sum{0};
  for (const Step& step : steps) sum += step.time;
  return sum;
}

}  // namespace

Serving::Line::Line(const Scenario& scenario, std::size_t index, int threads)
    : model(&scenario.models[index]),
      wide{.steps = OnThreads(scenario.machine, model->steps, threads, model->speedup), .latency = {}},
      narrow{.steps = OnThreads(scenario.machine, model->steps, 1, model->speedup), .latency = {}},
      arrivals(scenario.seed, 2 * index),
      times(scenario.seed, 2 * index + 1),
      tally(scenario.warmup.count(), model->rate * Seconds(scenario.duration)),
      last_arrival((scenario.warmup + scenario.duration).count()) {
  for (Runs* runs : {&wide, &narrow}) {
    Step& first = runs->steps[0];
    if (model->front.count() > 0) first.width += Seconds(model->front) / Seconds(first.time);
    // As the server's first run of a model that it loads.
    runs->latency.Observe(1, Sum(runs->steps), EventClock::At(0));
  }
  batching.max_batch_size = model->max_batch;
  batching.dynamic = model->max_batch > 1;
  // From anywhere in the gap, or equal gaps of several models would fall together.
  if (model->poisson) {
    Draw();
  } else {
    ComeAt(std::llround(arrivals.Uniform() * 1e9 / model->rate));
  }
}

void Serving::Line::Draw() {
  const double gap = model->poisson ? arrivals.Exponential() : 1;
  ComeAt(next_arrival + std::max<Time>(1, std::llround(gap * 1e9 / model->rate)));
}

Serving::Serving(const Scenario& scenario, int threads)
    : scenario_(scenario),
      admission_(std::move(MakeAdmission(scenario.admission)).value()),
      workers_(static_cast<std::size_t>(scenario.machine.workers == 0 ? threads : scenario.machine.workers)),
      runs_(workers_.size()),
      slots_(static_cast<int>(workers_.size()), scenario.machine.workers == 0 && threads > 1) {
  std::size_t most = 1;
  for (std::size_t i = 0; i < scenario.models.size(); ++i) {
    lines_.push_back(std::make_unique<Line>(scenario, i, threads));
    next_arrival_ = std::min(next_arrival_, lines_.back()->next_arrival);
    most = std::max(most, static_cast<std::size_t>(scenario.models[i].max_batch));
  }
  for (Worker& worker : workers_) worker.batch.reserve(most);
  rests_.reserve(workers_.size());
  sizes_.assign(most, 1);
  left_.reserve(most);
  predicted_.reserve(most);
}

Time Serving::NextEvent() const {
  Time next = next_arrival_;
  if (queued_ == 0) return next;
  for (const auto& line : lines_) {
    if (!line->waiting.empty()) next = std::min(next, line->waiting[0].deadline);
  }
  return next;
}

void Serving::Handle(Time now, std::uint64_t& order) {
  if (now >= next_arrival_) {
    next_arrival_ = kNever;
    for (const auto& line : lines_) {
      while (line->next_arrival <= now) Arrive(*line, now);
      next_arrival_ = std::min(next_arrival_, line->next_arrival);
    }
  }
  if (queued_ == 0) return;
  DropLate(now);
  for (std::size_t i = 0; i < workers_.size() && !slots_.full(); ++i) {
    if (workers_[i].line != nullptr) continue;
    Line* line = MostUrgent();
    std::size_t count = 0;
    while (line != nullptr && (count = Choose(*line, now)) == 0) line = MostUrgent();
    if (line == nullptr) return;
    const WidthChoice choice = slots_.widths() ? WidthFor(*line, count, now) : WidthChoice::kAll;
    if (choice == WidthChoice::kWait) return;
    Start(i, *line, count, choice == WidthChoice::kOne ? RunWidth::kOne : RunWidth::kAll, now, order++);
  }
}

void Serving::Arrive(Line& line, Time now) {
  Request request{.arrival = line.next_arrival};
  if (line.model->slo) request.deadline = request.arrival + line.model->slo->count();
  if (line.model->spread > 0) request.factor = std::exp(line.model->spread * line.times.Normal());
  line.Draw();
  line.tally.Offered(request);
  if (!Admit(line, request, now)) return line.tally.Rejected(request);
  line.waiting.Push(request);
  ++queued_;
  ++pending_;
}

Status Serving::Admit(const Line& line, const Request& request, Time now) {
  AdmissionSnapshot snapshot{.model = line.model->name,
                             .now = EventClock::At(now),
                             .queued = queued_,
                             .queued_model = line.waiting.size(),
                             .max_queued = scenario_.max_queued};
  if (request.deadline != kNever) Forecast(line, request, now, snapshot);
  return admission_->Admit(snapshot);
}

Serving::Ahead Serving::Before(const Line& line, const Request& request, RunWidth width) const {
  Ahead ahead;
  for (const auto& other : lines_) {
    const LatencyModel& latency = other->runs(width).latency;
    const std::size_t before = other->waiting.UpTo(request.deadline);
    const auto together = static_cast<std::size_t>(other->model->max_batch);
    if (before >= together) ahead.work += static_cast<std::int64_t>(before / together) * Typical(latency, together);
    const std::size_t rest = before % together;
    if (rest == 0) continue;
    if (other.get() == &line) {
      ahead.own = rest + 1;
    } else {
      ahead.work += Typical(latency, rest);
    }
  }
  return ahead;
}

void Serving::Forecast(const Line& line, const Request& request, Time now, AdmissionSnapshot& snapshot) {
  // What the way to and from the server takes is known to nobody in it.
  snapshot.deadline = EventClock::At(request.deadline);
  slots_.Rests(EventClock::At(now), rests_);
  const auto run = [&](RunWidth width, std::size_t own) {
    return line.runs(width).latency.Predict(static_cast<std::int64_t>(own));
  };
  const Ahead wide = Before(line, request, RunWidth::kAll);
  snapshot.run = run(RunWidth::kAll, wide.own);
  if (!slots_.widths()) {
    snapshot.work_ahead = UntilTurn(wide.work, rests_);
    return;
  }
  snapshot.work_ahead = std::ranges::max(rests_) + wide.work;
  if (snapshot.work_ahead.count() == 0 || !snapshot.run) return;
  const Ahead narrow = Before(line, request, RunWidth::kOne);
  const nanoseconds turn = UntilTurn(narrow.work, rests_);
  const auto own = run(RunWidth::kOne, narrow.own);
  if (!own || IsDoubtful(*own, snapshot.now) || turn + own->high >= snapshot.work_ahead + snapshot.run->high) return;
  snapshot.work_ahead = turn;
  snapshot.run = own;
}

WidthChoice Serving::WidthFor(const Line& line, std::size_t count, Time now) {
  slots_.Rests(EventClock::At(now), rests_);
  WidthSnapshot snapshot{.now = EventClock::At(now),
                         .rests = rests_,
                         .running = slots_.running(),
                         .overdue = slots_.OverdueAt() <= EventClock::At(now),
                         .wide = line.wide.latency.Predict(static_cast<std::int64_t>(count)),
                         .narrow = line.narrow.latency.Predict(static_cast<std::int64_t>(count)),
                         .runs = 0};
  if (line.waiting[0].deadline != kNever) snapshot.left = nanoseconds(line.waiting[0].deadline - now);
  for (const auto& other : lines_) {
    const auto together = static_cast<std::size_t>(other->model->max_batch);
    const auto whole = static_cast<std::int64_t>(other->waiting.size() / together);
    const std::size_t rest = other->waiting.size() % together;
    snapshot.runs += whole + (rest > 0 ? 1 : 0);
    const auto all = [&](const LatencyModel& latency) {
      return whole * Typical(latency, together) + (rest > 0 ? Typical(latency, rest) : nanoseconds(0));
    };
    snapshot.all_wide += all(other->wide.latency);
    snapshot.all_narrow += all(other->narrow.latency);
  }
  return ChooseWidth(snapshot);
}

void Serving::Drop(Line& line) {
  line.tally.Rejected(line.waiting[0]);
  line.waiting.Pop();
  --queued_;
  --pending_;
}

void Serving::DropLate(Time now) {
  for (const auto& line : lines_) {
    while (!line->waiting.empty() && line->waiting[0].deadline <= now) Drop(*line);
  }
}

Serving::Line* Serving::MostUrgent() {
  Line* urgent = nullptr;
  for (const auto& line : lines_) {
    if (line->waiting.empty()) continue;
    const auto key = [](const Line& l) { return std::pair(l.waiting[0].deadline, l.waiting[0].arrival); };
    if (urgent == nullptr || key(*line) < key(*urgent)) urgent = line.get();
  }
  return urgent;
}

std::size_t Serving::Choose(Line& line, Time now) {
  RunWays ways{.all_free = EventClock::At(now),
               .wide = line.wide.latency.Predict(1),
               .narrow_possible = slots_.widths(),
               .narrow = line.narrow.latency.Predict(1)};
  if (slots_.widths()) {
    slots_.Rests(EventClock::At(now), rests_);
    ways.all_free += std::ranges::max(rests_);
  }
  while (!line.waiting.empty() && line.waiting[0].deadline != kNever &&
         IsHopeless(*admission_, EventClock::At(now), EventClock::At(line.waiting[0].deadline), ways)) {
    Drop(line);
  }
  if (line.waiting.size() <= 1 || !line.batching.dynamic) return std::min<std::size_t>(line.waiting.size(), 1);
  const auto most = std::min(line.waiting.size(), static_cast<std::size_t>(line.model->max_batch));
  left_.clear();
  predicted_.clear();
  nanoseconds longest{0};
  for (std::size_t i = 0; i < most && line.model->slo; ++i) {
    left_.emplace_back(line.waiting[i].deadline - now);
    // As the dispatcher: sizes that were never run are taken to be as short as the last that was.
    const auto run = line.wide.latency.Predict(static_cast<std::int64_t>(i + 1));
    if (run && !run->guessed()) longest = std::max(longest, run->high);
    predicted_.push_back(longest);
  }
  return ChooseBatch({.settings = line.batching,
                      .sizes = std::span(sizes_).first(most),
                      .oldest_wait = nanoseconds(now - line.waiting[0].arrival),
                      .left = left_,
                      .runs = predicted_})
      .take;
}

void Serving::Start(std::size_t worker, Line& line, std::size_t count, RunWidth width, Time now, std::uint64_t order) {
  Worker& w = workers_[worker];
  w.line = &line;
  w.width = width;
  w.began = now;
  const MonotonicTime begins = EventClock::At(now);
  slots_.Begin(worker, width, begins, begins + Typical(line.runs(width).latency, count));
  w.batch.clear();
  for (std::size_t i = 0; i < count; ++i) {
    w.batch.push_back(line.waiting[0]);
    line.waiting.Pop();
  }
  queued_ -= count;
  runs_[worker].Load(line.runs(width).steps, line.Scale(count) * w.batch[0].factor, order);
}

void Serving::StepsDone(Time now, std::uint64_t& order) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Stream& run = runs_[i];
    if (!run.busy() || !run.StepDone()) continue;
    if (run.at + 1 < run.steps.size()) {
      run.GoTo(run.at + 1, order++);
    } else {
      Answer(i, now);
    }
  }
}

void Serving::Answer(std::size_t worker, Time now) {
  Worker& w = workers_[worker];
  LatencyModel& latency = w.line->runs(w.width).latency;
  latency.Observe(static_cast<std::int64_t>(w.batch.size()), nanoseconds(now - w.began), EventClock::At(now));
  for (const Request& request : w.batch) w.line->tally.Answered(request, now + w.line->model->overhead.count());
  pending_ -= static_cast<std::int64_t>(w.batch.size());
  answered_ += w.batch.size();
  w.line = nullptr;
  slots_.End(worker, EventClock::At(now));
  runs_[worker].Clear();
}

std::vector<ModelResult> Serving::Finish(Time end) {
  for (const Worker& worker : workers_) {
    if (worker.line == nullptr) continue;
    for (const Request& request : worker.batch) worker.line->tally.Unfinished(request, end);
  }
  std::vector<ModelResult> results;
  for (const auto& line : lines_) {
    for (std::size_t i = 0; i < line->waiting.size(); ++i) line->tally.Unfinished(line->waiting[i], end);
    results.push_back(line->tally.Finish());
    results.back().name = line->model->name;
  }
  return results;
}

}  // namespace tandem::simulation
