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
      steps(OnThreads(scenario.machine, model->steps, threads, model->speedup)),
      arrivals(scenario.seed, 2 * index),
      times(scenario.seed, 2 * index + 1),
      tally(scenario.warmup.count(), model->rate * Seconds(scenario.duration)),
      last_arrival((scenario.warmup + scenario.duration).count()) {
  if (model->front.count() > 0) steps[0].width += Seconds(model->front) / Seconds(steps[0].time);
  batching.max_batch_size = model->max_batch;
  batching.dynamic = model->max_batch > 1;
  // As the server's first run of a model that it loads.
  latency.Observe(1, Sum(steps), EventClock::At(0));
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
      workers_(static_cast<std::size_t>(scenario.machine.workers)),
      runs_(workers_.size()) {
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
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].line != nullptr) continue;
    Line* line = MostUrgent();
    std::size_t count = 0;
    while (line != nullptr && (count = Choose(*line, now)) == 0) line = MostUrgent();
    if (line == nullptr) return;
    Start(i, *line, count, now, order++);
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
  if (request.deadline != kNever) {
    // What the way to and from the server takes is known to nobody in it.
    snapshot.deadline = EventClock::At(request.deadline);
    nanoseconds ahead{0};
    std::size_t own = 1;
    for (const auto& other : lines_) {
      const std::size_t before = other->waiting.UpTo(request.deadline);
      const auto together = static_cast<std::size_t>(other->model->max_batch);
      if (before >= together) {
        ahead += static_cast<std::int64_t>(before / together) * Typical(other->latency, together);
      }
      const std::size_t rest = before % together;
      if (rest == 0) continue;
      if (other.get() == &line) {
        own = rest + 1;
      } else {
        ahead += Typical(other->latency, rest);
      }
    }
    rests_.clear();
    for (const Worker& worker : workers_) {
      rests_.emplace_back(worker.line == nullptr ? 0 : std::max<Time>(0, worker.ends - now));
    }
    snapshot.work_ahead = UntilTurn(ahead, rests_);
    snapshot.run = line.latency.Predict(static_cast<std::int64_t>(own));
  }
  return admission_->Admit(snapshot);
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
  const auto alone = line.latency.Predict(1);
  while (!line.waiting.empty() && line.waiting[0].deadline != kNever &&
         admission_->IsHopeless(EventClock::At(now), EventClock::At(line.waiting[0].deadline), alone)) {
    Drop(line);
  }
  if (line.waiting.size() <= 1 || !line.batching.dynamic) return std::min<std::size_t>(line.waiting.size(), 1);
  const auto most = std::min(line.waiting.size(), static_cast<std::size_t>(line.model->max_batch));
  left_.clear();
  predicted_.clear();
  for (std::size_t i = 0; i < most; ++i) {
    if (line.model->slo) left_.emplace_back(line.waiting[i].deadline - now);
    if (const auto run = line.latency.Predict(static_cast<std::int64_t>(i + 1))) predicted_.push_back(run->high);
  }
  return ChooseBatch({.settings = line.batching,
                      .sizes = std::span(sizes_).first(most),
                      .oldest_wait = nanoseconds(now - line.waiting[0].arrival),
                      .left = left_,
                      .runs = predicted_})
      .take;
}

void Serving::Start(std::size_t worker, Line& line, std::size_t count, Time now, std::uint64_t order) {
  Worker& w = workers_[worker];
  w.line = &line;
  w.began = now;
  w.ends = now + Typical(line.latency, count).count();
  w.batch.clear();
  for (std::size_t i = 0; i < count; ++i) {
    w.batch.push_back(line.waiting[0]);
    line.waiting.Pop();
  }
  queued_ -= count;
  runs_[worker].Load(line.steps, line.Scale(count) * w.batch[0].factor, order);
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
  w.line->latency.Observe(static_cast<std::int64_t>(w.batch.size()), nanoseconds(now - w.began), EventClock::At(now));
  for (const Request& request : w.batch) w.line->tally.Answered(request, now + w.line->model->overhead.count());
  pending_ -= static_cast<std::int64_t>(w.batch.size());
  answered_ += w.batch.size();
  w.line = nullptr;
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
