#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "api/base/data_type.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "api/base/training_job.h"

namespace tandem::training {

// What the model takes and is to learn; data is checked against it. Shapes are those of one example, without the
// dimension of the batch; -1 where a dimension is free.
struct DataNeeds {
  struct Input {
    std::string name;
    DataType type = DataType::kFp32;
    std::vector<std::int64_t> shape;
  };
  std::vector<Input> inputs;
  bool classes = true;                     // The target is class numbers (cross-entropy), INT64; else it is FP32.
  std::int64_t class_count = 0;            // 0: not known.
  std::vector<std::int64_t> target_shape;  // Empty: one number for each example.
};

// How much of what a file says is believed.
struct DataLimits {
  std::uint64_t unpacked_bytes = std::uint64_t{4} << 30;  // Arrays of a packed .npz, together; they are held in memory.
  std::int64_t image_pixels = std::int64_t{64} << 20;     // Of one picture.
  std::uint64_t batch_bytes = std::uint64_t{16} << 30;    // Of one tensor of a batch.
};

// Some examples, as tensors whose first dimension counts them.
struct Batch {
  std::vector<Tensor> inputs;  // In the order of DataNeeds::inputs.
  Tensor target;
  std::int64_t size = 0;
};

// Examples by their number. Does not change once it is open, and may be used by many threads at once. Errors in what
// is read name the file and the place in it.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  // All labels are below it; 0 when the target is no class.
  [[nodiscard]] virtual std::int64_t classes() const = 0;
  // The name of each class by its number; empty when the data only has numbers.
  [[nodiscard]] virtual const std::vector<std::string>& class_names() const = 0;

  // Makes a batch of the examples with these numbers, each in [0, size()), in this order. kCancelled soon after `stop`
  // asks for it.
  [[nodiscard]] virtual Status Read(std::span<const std::int64_t> examples, Batch& into,
                                    const std::stop_token& stop = {}) const = 0;
};

// Opens the data of a job and checks as much of it as can be without reading all: arrays, shapes, types and labels now;
// numbers and pictures when they are read. Files lie under `data_root`, also when links are followed. `seed` is for
// synthetic data.
[[nodiscard]] Result<std::unique_ptr<ExampleSource>> OpenData(const DataSpec& spec, const DataNeeds& needs,
                                                              const std::filesystem::path& data_root,
                                                              std::uint64_t seed, const DataLimits& limits = {});

}  // namespace tandem::training
