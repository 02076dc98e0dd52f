// What trainers tell, and how it is kept.

#include <algorithm>
#include <optional>
#include <utility>

#include <json/value.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "api/wire/training_memory_json.h"
#include "server/jobs/supervisor.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

template <typename T>
void LogIfFailed(const Result<T>& result, const char* what, JobId id) {
  if (!result) LogError(what, {{"job", std::to_string(id)}, {"reason", result.error().message}});
}

}  // namespace

void Supervisor::TakeEvents(Active& active) {
  for (const TrainerEvent& event : active.trainer->process().ReadEvents()) {
    std::visit([&](const auto& one) { Take(active, one); }, event);
  }
}

void Supervisor::Take(Active& active, const PlanEvent& event) {
  active.first_step = event.first_step;
  // A trainer that is lost may have come farther, and have saved that, than it has told.
  active.counted_step = std::min(active.progress.step, event.first_step);
  active.progress.step = event.first_step;
  active.progress.total_steps = event.total_steps;
  active.progress_unsaved = true;
  active.trainer->SetProgress(event.first_step, event.total_steps);
  CountSteps(active, event.first_step);
  const auto state = store_.Get(active.record.id);
  if (state && state->state == JobState::kAdmitted) {
    LogIfFailed(store_.Transition(active.record.id, JobAction::kStart), "a job could not be marked as running",
                active.record.id);
  }
  AddEvent(active.record.id, "plan",
           Format(R"({{"first_step":{},"total_steps":{},"examples":{},"evaluation_examples":{},"parameters":{}}})",
                  event.first_step, event.total_steps, event.examples, event.evaluation_examples, event.parameters));
}

void Supervisor::Take(Active& active, const StepEvent& event) {
  active.progress.step = event.step;
  active.progress.epoch = event.epoch;
  active.progress.loss = event.loss;
  active.trainer->SetProgress(event.step, active.progress.total_steps);
  CountSteps(active, event.step);
  active.progress_unsaved = true;
  active.losses.push_back({.step = event.step, .value = event.loss});
  active.rates.push_back({.step = event.step, .value = event.learning_rate});
}

void Supervisor::Take(Active& active, const EvaluationEvent& event) {
  active.progress.metric_name = event.accuracy ? "accuracy" : "eval_loss";
  active.progress.metric = event.accuracy.value_or(event.loss);
  if (event.best) active.progress.best_metric = active.progress.metric;
  active.progress_unsaved = true;
  const SeriesPoint loss{.step = event.step, .value = event.loss};
  LogIfFailed(store_.AddSeriesPoints(active.record.id, "eval_loss", {&loss, 1}), "a point was lost", active.record.id);
  Json::Value body;
  body["step"] = Json::Int64(event.step);
  body["loss"] = event.loss;
  body["best"] = event.best;
  if (event.accuracy) {
    body["accuracy"] = *event.accuracy;
    const SeriesPoint accuracy{.step = event.step, .value = *event.accuracy};
    LogIfFailed(store_.AddSeriesPoints(active.record.id, "accuracy", {&accuracy, 1}), "a point was lost",
                active.record.id);
  }
  AddEvent(active.record.id, "evaluation", JsonLine(body));
}

void Supervisor::Take(Active& active, const CheckpointEvent& event) {
  const JobId id = active.record.id;
  Json::Value body;
  body["step"] = Json::Int64(event.step);
  if (!event.problem.empty()) {
    body["problem"] = event.problem;
    LogWarning("a checkpoint could not be written", {{"job", std::to_string(id)}, {"reason", event.problem}});
    return AddEvent(id, "checkpoint_failed", JsonLine(body));
  }
  failures_.erase(id);  // It gets on.
  // A trainer says where it writes; only its own folder counts.
  const std::filesystem::path file = active.folder.path / std::filesystem::path(event.file).filename();
  LogIfFailed(store_.AddCheckpoint({.job = id,
                                    .step = event.step,
                                    .path = file,
                                    .bytes = static_cast<std::int64_t>(event.bytes),
                                    .checksum = Format("{:08x}", event.checksum)}),
              "a checkpoint could not be noted", id);
  // The trainer keeps the newest ones only.
  if (const auto known = store_.Checkpoints(id)) {
    for (const CheckpointRecord& checkpoint : *known) {
      std::error_code ec;
      if (!std::filesystem::exists(checkpoint.path, ec)) {
        LogIfFailed(store_.RemoveCheckpoint(id, checkpoint.step), "a checkpoint could not be forgotten", id);
      }
    }
  }
  metrics_.Checkpointed(id);
  active.progress.step = std::max(active.progress.step, event.step);
  active.progress_unsaved = true;
  CountSteps(active, event.step);
  body["bytes"] = Json::UInt64(event.bytes);
  AddEvent(id, "checkpoint", JsonLine(body));
}

void Supervisor::Take(Active& active, const SkippedEvent& event) {
  const JobId id = active.record.id;
  LogWarning("a checkpoint was passed over", {{"job", std::to_string(id)}, {"reason", event.why}});
  const std::string name = std::filesystem::path(event.file).filename();
  if (const auto known = store_.Checkpoints(id)) {
    for (const CheckpointRecord& checkpoint : *known) {
      if (std::filesystem::path(checkpoint.path).filename() == name) {
        LogIfFailed(store_.MarkCheckpointBad(id, checkpoint.step), "a checkpoint could not be marked", id);
      }
    }
  }
  AddEvent(id, "checkpoint_skipped", Format(R"({{"file":{},"why":{}}})", JsonString(name), JsonString(event.why)));
}

void Supervisor::Take(Active& active, const EstimateEvent& event) {
  const JobId id = active.record.id;
  active.estimate = event.estimate;
  LogIfFailed(store_.SetMemory(id, JsonLine(JobMemoryToJson(active.estimate, std::nullopt))),
              "an estimate could not be saved", id);
  if (memory_.Expect(id, NeedAsTold(event.estimate.persistent.total(), event.estimate.ephemeral))) return;
  // It has not begun: nothing is lost.
  active.to_wait = true;
  active.trainer->process().Kill();
}

void Supervisor::Take(Active& active, const MemoryEvent& event) {
  const JobId id = active.record.id;
  const Json::Value memory = JobMemoryToJson(active.estimate, event.use);
  LogIfFailed(store_.SetMemory(id, JsonLine(memory)), "what a trainer takes of memory could not be saved", id);
  if (active.estimate) metrics_.Estimated(id, *active.estimate, event.use);
  AddEvent(id, "memory", JsonLine(memory));
}

void Supervisor::Take(Active& active, const EndEvent& event) {
  active.end = event;
  if (event.outcome != TrainerOutcome::kFailed) CountSteps(active, event.step);
}

void Supervisor::CountSteps(Active& active, std::int64_t step) {
  // A trainer's word; it does no more steps than it has planned.
  step = std::min(step, active.progress.total_steps);
  if (step <= active.counted_step) return;
  metrics_.Iterated(active.record.id, step - active.counted_step, active.progress.loss);
  active.counted_step = step;
}

void Supervisor::TellOfDisobedience(Active& active) {
  const JobId id = active.record.id;
  if (const auto board = active.trainer->TakeOverwritten()) {
    AddEvent(id, "board_overwritten",
             Format(R"({{"found":{{"version":{},"orders":{}}},"given":{{"version":{},"orders":{}}}}})",
                    board->found.version, board->found.orders, board->given.version, board->given.orders));
  }
  if (const auto verdict = active.trainer->TakeIgnoredHold(); verdict != HoldWatch::Verdict::kNone) {
    const bool killed = verdict == HoldWatch::Verdict::kKill;
    LogWarning(killed ? "a trainer did not wait when it was told to, for the second time, and is killed"
                      : "a trainer did not wait when it was told to and is stopped",
               {{"job", std::to_string(id)}});
    AddEvent(id, "hold_ignored",
             Format(R"({{"after_seconds":{},"killed":{}}})", HoldWatch::kBound.count(), killed ? "true" : "false"));
  }
}

void Supervisor::WatchMemory(Active& active) {
  // The first steps allocate what the others use again.
  constexpr std::int64_t kFirstSteps = 3;
  const TrainerProcess& process = active.trainer->process();
  const bool settled = active.first_step && active.progress.step >= *active.first_step + kFirstSteps;
  memory_.Watch(active.record.id, process.ResidentBytes(), process.PeakResidentBytes(), settled);
}

JobRecord Supervisor::Explained(JobRecord record, bool in_detail) const {
  if (record.state != JobState::kQueued) return record;
  if (std::string why = memory_.WhyWaiting(record.id, in_detail); !why.empty()) record.reason = std::move(why);
  return record;
}

void Supervisor::Save(Active& active) {
  active.saved_at = clock_.Now();
  const JobId id = active.record.id;
  if (std::exchange(active.progress_unsaved, false)) {
    LogIfFailed(store_.UpdateProgress(id, active.progress), "progress could not be saved", id);
  }
  if (active.losses.empty()) return;
  LogIfFailed(store_.AddSeriesPoints(id, "loss", std::exchange(active.losses, {})), "points were lost", id);
  LogIfFailed(store_.AddSeriesPoints(id, "lr", std::exchange(active.rates, {})), "points were lost", id);
}

void Supervisor::AddEvent(JobId id, const char* kind, const std::string& json) {
  LogIfFailed(store_.AddEvent(id, kind, json), "an event was lost", id);
}

}  // namespace tandem::jobs
