#include <random>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"
#include "tests/api/wire/mutation.h"

namespace tandem {
namespace {

std::int64_t From(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

bool Coin() {
  return *rc::gen::arbitrary<bool>();
}

// Strictly between 0 and 1, with a text of many digits.
double Share() {
  return static_cast<double>(From(1, 999'999'999)) / 1'000'000'007.0;
}

std::string AnyName() {
  return *rc::gen::element<std::string>("x", "fc.*", "größe", "a b", "\"quoted\"", "0", std::string(255, 'n'));
}

DataSpec AnyData() {
  DataSpec data;
  data.kind = *rc::gen::element(DataKind::kArrays, DataKind::kCsv, DataKind::kImages, DataKind::kSynthetic);
  data.path = *rc::gen::element<std::string>("a", "a/b", "ä ö", "a..b", ".");
  switch (data.kind) {
    case DataKind::kArrays:
      for (std::int64_t i = From(0, 3); i > 0; --i) data.inputs[AnyName()] = AnyName();
      data.target = AnyName();
      break;
    case DataKind::kCsv:
      for (std::int64_t i = From(0, 3); i > 0; --i) data.columns.push_back(AnyName());
      data.target = "target";
      break;
    case DataKind::kImages:
      for (std::int64_t i = From(0, 4); i > 0; --i) {
        data.mean.push_back(Share() - 0.5);
        data.deviation.push_back(Share());
      }
      break;
    case DataKind::kSynthetic:
      data.path.clear();
      data.samples = From(1, 1'000'000'000);
      data.classes = From(0, 1000);
      break;
  }
  return data;
}

LossSpec AnyLoss() {
  LossSpec loss;
  loss.kind = *rc::gen::element(LossKind::kCrossEntropy, LossKind::kMeanSquared, LossKind::kBinaryCrossEntropy,
                                LossKind::kAbsolute, LossKind::kHuber);
  if (loss.kind == LossKind::kHuber) loss.delta = 10 * Share();
  if (loss.kind == LossKind::kCrossEntropy && Coin()) loss.label_smoothing = Share();
  return loss;
}

OptimizerSpec AnyOptimizer() {
  OptimizerSpec optimizer;
  optimizer.kind = *rc::gen::element(OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW);
  optimizer.learning_rate = Share();
  optimizer.weight_decay = Coin() ? 0 : Share();
  if (optimizer.kind == OptimizerKind::kSgd) {
    optimizer.momentum = Coin() ? 0 : Share();
    optimizer.nesterov = optimizer.momentum > 0 && Coin();
  } else {
    optimizer.beta1 = Share();
    optimizer.beta2 = Share();
    optimizer.epsilon = Share() * 1e-8;
  }
  return optimizer;
}

ScheduleSpec AnySchedule() {
  ScheduleSpec schedule;
  schedule.kind = *rc::gen::element(ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kStep);
  schedule.warmup_steps = From(0, 99);
  if (schedule.kind == ScheduleKind::kCosine) schedule.floor = Share();
  if (schedule.kind == ScheduleKind::kStep) {
    schedule.every_steps = From(1, 1'000'000'000);
    schedule.factor = Share();
  }
  return schedule;
}

EvaluationSpec AnyEvaluation() {
  EvaluationSpec evaluation;
  if (Coin()) {
    evaluation.split = Share();
  } else {
    evaluation.data = AnyData();
  }
  evaluation.every_steps = From(0, 1'000'000'000);
  evaluation.patience = From(0, 1'000'000'000);
  return evaluation;
}

TrainingJob AnyJob() {
  TrainingJob job;
  job.name = *rc::gen::element<std::string>("a", "größe x", "\"");
  job.model = *rc::gen::element<std::string>("m", "modèle");
  job.model_version = *rc::gen::element<std::string>("", "1", "999999999999999999");
  job.output = Coin() ? "" : AnyName();
  job.data = AnyData();
  job.loss = AnyLoss();
  job.optimizer = AnyOptimizer();
  job.schedule = AnySchedule();
  for (std::int64_t i = From(0, 3); i > 0; --i) job.trainable.push_back(AnyName());
  if (Coin()) job.replace_head = HeadSpec{.output = Coin() ? "" : AnyName(), .classes = From(1, 1'000'000)};
  job.update_batch_norm = Coin();
  job.batch_size = From(1, 1 << 20);
  (Coin() ? job.epochs : job.steps) = From(100, 1'000'000);
  job.accumulate = From(1, 1 << 20);
  job.clip_norm = Coin() ? 0 : 100 * Share();
  const bool evaluated = Coin();
  if (evaluated) job.evaluation = AnyEvaluation();
  job.checkpoint = {.every_steps = From(0, 1'000'000'000), .every_seconds = 1 + Share(), .keep = int(From(1, 100))};
  job.publish = *rc::gen::element(PublishRule::kNever, PublishRule::kOnSuccess);
  if (evaluated && Coin()) job.publish = PublishRule::kIfBetter;
  job.priority = static_cast<int>(From(-1000, 1000));
  job.seed = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
  job.deterministic = Coin();
  job.threads = static_cast<int>(From(0, 1024));
  if (Coin()) job.memory = static_cast<std::uint64_t>(From(1 << 20, std::int64_t{1} << 50));
  job.fit = Coin();
  return job;
}

RC_GTEST_PROP(TrainingJobRoundTrip, WritingAndReadingIsIdentity, ()) {
  const TrainingJob job = AnyJob();
  const std::string text = JsonLine(TrainingJobToJson(job));
  const auto again = ParseTrainingJob(text);
  if (!again) RC_FAIL(again.error().ToError().message);
  RC_ASSERT(*again == job);
  RC_ASSERT(JsonLine(TrainingJobToJson(*again)) == text);
}

RC_GTEST_PROP(TrainingJobRoundTrip, DamagedTextIsRefusedOrMeansWhatItSays, (unsigned seed)) {
  std::mt19937 random(seed);
  const std::string text = Mutate(JsonLine(TrainingJobToJson(AnyJob())), random);
  const auto job = ParseTrainingJob(text);
  if (job) {
    const auto again = ReadTrainingJob(TrainingJobToJson(*job));
    RC_ASSERT(again.has_value());
    RC_ASSERT(*again == *job);
  } else {
    RC_ASSERT(!job.error().list.empty());
    RC_ASSERT(!job.error().ToError().message.empty());
  }
}

}  // namespace
}  // namespace tandem
