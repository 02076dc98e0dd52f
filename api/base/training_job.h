#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What a training job is told to do: plain values, checked where they enter (api/wire/training_job_json.h) and read by
// the server and by the trainer alike.

namespace tandem {

// Where examples come from. Paths are relative to the server's data root.
enum class DataKind {
  kArrays,     // NumPy: an .npz file with named arrays, or a folder with one .npy file for each.
  kCsv,        // A header line, then one example a line.
  kImages,     // A folder for each class, with JPEG and PNG files in it.
  kSynthetic,  // Random examples, for measurements.
};

struct DataSpec {
  DataKind kind = DataKind::kArrays;
  std::string path;  // Empty for kSynthetic.
  // kArrays: the array of each input of the model. Empty: "x" for a model with one input, else arrays of their names.
  std::map<std::string, std::string> inputs;
  std::string target = "y";  // kArrays: the array, kCsv: the column that is learnt.
  // kCsv: the columns that make up the input, in order. Empty: all but the target.
  std::vector<std::string> columns;
  // kImages: each channel c becomes (value / 255 - mean[c]) / deviation[c].
  std::vector<double> mean;
  std::vector<double> deviation;
  // kSynthetic.
  std::int64_t samples = 0;
  std::int64_t classes = 0;

  friend bool operator==(const DataSpec&, const DataSpec&) = default;
};

enum class LossKind { kCrossEntropy, kMeanSquared, kBinaryCrossEntropy, kAbsolute, kHuber };

// Whether it judges answers that are right or wrong: an evaluation then has an accuracy, and more of it is better.
// Without one it has the loss alone, and less is.
[[nodiscard]] constexpr bool HasAccuracy(LossKind loss) {
  return loss == LossKind::kCrossEntropy || loss == LossKind::kBinaryCrossEntropy;
}

struct LossSpec {
  LossKind kind = LossKind::kCrossEntropy;
  double delta = 1;            // kHuber: where it turns from square to line.
  double label_smoothing = 0;  // kCrossEntropy.

  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

enum class OptimizerKind { kSgd, kAdam, kAdamW };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double learning_rate = 1e-3;
  double weight_decay = 0;
  // kSgd.
  double momentum = 0;
  bool nesterov = false;
  // kAdam, kAdamW.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

enum class ScheduleKind { kConstant, kCosine, kStep };

// The learning rate over the steps of a job, as a factor of the optimizer's.
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::int64_t warmup_steps = 0;  // Rises in a line from 0; before any kind.
  double floor = 0;               // kCosine: where it ends.
  std::int64_t every_steps = 0;   // kStep: multiplied by `factor` after so many.
  double factor = 0.1;

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

// Puts a new last layer in place of the one that makes `output`.
struct HeadSpec {
  std::string output;  // Empty: the model's first.
  std::int64_t classes = 0;

  friend bool operator==(const HeadSpec&, const HeadSpec&) = default;
};

struct EvaluationSpec {
  double split = 0;              // This share of the training examples is held out; 0: none, unless `data` is given.
  std::optional<DataSpec> data;  // Examples of its own, in place of a split.
  std::int64_t every_steps = 0;  // 0: at the end of each epoch.
  // Stops when so many evaluations in a row were no better; 0: never.
  std::int64_t patience = 0;

  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

struct CheckpointSpec {
  std::int64_t every_steps = 0;  // 0: by time alone.
  double every_seconds = 60;     // 0: by steps alone.
  int keep = 3;

  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

enum class PublishRule { kNever, kOnSuccess, kIfBetter };

struct TrainingJob {
  std::string name;
  std::string model;          // In the repository.
  std::string model_version;  // Empty: the one that is served when the job begins.
  std::string output;         // The output that is trained; empty: the first.
  DataSpec data;
  LossSpec loss;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::vector<std::string> trainable;  // Patterns (*, ?) of parameter names; empty: all floating-point weights.
  std::optional<HeadSpec> replace_head;
  bool update_batch_norm =
      false;  // Batch normalisation uses and updates statistics of the batches; else it stays as it is.
  std::int64_t batch_size = 32;
  // One of the two is set.
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  std::int64_t accumulate = 1;  // Batches to a step of the optimizer.
  double clip_norm = 0;         // 0: gradients are not clipped.
  EvaluationSpec evaluation;
  CheckpointSpec checkpoint;
  PublishRule publish = PublishRule::kNever;
  int priority = 0;  // Larger runs first.
  std::uint64_t seed = 0;
  bool deterministic = false;
  int threads = 0;                      // 0: as many as the server gives.
  std::optional<std::uint64_t> memory;  // The most bytes the trainer may hold.
  // A step computes a part again so that it stays within `memory`; without that, within what is free when it begins.
  bool fit = false;

  friend bool operator==(const TrainingJob&, const TrainingJob&) = default;
};

}  // namespace tandem
