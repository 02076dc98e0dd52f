#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/training/data/batch_buffer.h"
#include "runtimes/training/data/counter_random.h"
#include "runtimes/training/data/element_convert.h"
#include "runtimes/training/data/sources.h"

namespace tandem::training {
namespace {

// Random numbers that depend on seed, tensor and place alone: floats in [-1, 1) for inputs and [0, 1) for targets; 0 or
// 1 where whole numbers are wanted, which every table and mask has.
class SyntheticSource final : public ExampleSource {
 public:
  SyntheticSource(std::vector<Column> inputs, Column target, std::int64_t size, std::int64_t classes,
                  std::uint64_t seed, const DataLimits& limits)
      : inputs_(std::move(inputs)),
        target_(std::move(target)),
        size_(size),
        classes_(classes),
        seed_(seed),
        limits_(limits) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return no_names_; }

  [[nodiscard]] Status Read(std::span<const std::int64_t> examples, Batch& into,
                            const std::stop_token& stop) const override {
    Batch batch{.inputs = {}, .target = {}, .size = std::ssize(examples)};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const CounterRandom random(seed_, i + 1);
      TANDEM_ASSIGN(Tensor tensor, Make(inputs_[i], examples, stop, [&](std::uint64_t n) {
                      return IsFloat(inputs_[i].type) ? random.UnitAt(n) * 2 - 1
                                                      : static_cast<float>(random.BelowAt(n, 2));
                    }));
      batch.inputs.push_back(std::move(tensor));
    }
    const CounterRandom random(seed_, 0);
    TANDEM_ASSIGN(batch.target, Make(target_, examples, stop, [&](std::uint64_t n) {
                    return classes_ > 0 ? static_cast<float>(random.BelowAt(n, static_cast<std::uint64_t>(classes_)))
                                        : random.UnitAt(n);
                  }));
    into = std::move(batch);
    return {};
  }

 private:
  template <typename F>
  [[nodiscard]] Result<Tensor> Make(const Column& column, std::span<const std::int64_t> examples,
                                    const std::stop_token& stop, const F& value) const {
    TANDEM_ASSIGN(BatchBuffer buffer, BatchBuffer::Make(column, examples.size(), limits_));
    std::vector<float> floats(IsFloat(column.type) ? column.elements : 0);
    std::vector<std::int64_t> wholes(column.elements - floats.size());
    for (std::size_t i = 0; i < examples.size(); ++i) {
      TANDEM_TRY(CheckGoesOn(stop));
      std::uint64_t n = static_cast<std::uint64_t>(examples[i]) * column.elements;
      for (float& element : floats) element = value(n++);
      for (std::int64_t& element : wholes) element = static_cast<std::int64_t>(value(n++));
      const bool is_float = !floats.empty();
      const auto* from = is_float ? static_cast<const void*>(floats.data()) : wholes.data();
      (void)ConvertElements(is_float ? DataType::kFp32 : DataType::kInt64, static_cast<const std::byte*>(from),
                            column.type, buffer.row(i), column.elements);
    }
    return std::move(buffer).Finish(column);
  }

  // Constant after construction.
  const std::vector<Column> inputs_;
  const Column target_;
  const std::int64_t size_;
  const std::int64_t classes_;
  const std::uint64_t seed_;
  const DataLimits limits_;
  const std::vector<std::string> no_names_;
};

Result<Column> FixedColumn(const std::string& name, DataType type, const Shape& shape, const DataLimits& limits) {
  for (const std::int64_t dim : shape) {
    if (dim < 0) return Invalid("synthetic data cannot be made for '{}': its shape {} is free", name, ShapeText(shape));
  }
  return Column::Make(name, type, shape, limits);
}

Result<std::int64_t> ClassesOf(const DataSpec& spec, const DataNeeds& needs) {
  // Class numbers pass through a float.
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (!needs.classes) return 0;
  const std::int64_t classes = spec.classes > 0 ? spec.classes : needs.class_count;
  if (classes <= 0) return Invalid("synthetic data needs to be told how many classes there are");
  if (classes > kMost || (needs.class_count > 0 && classes > needs.class_count)) {
    return Invalid("synthetic data of {} classes is too much for a model of {}", classes,
                   needs.class_count > 0 ? needs.class_count : kMost);
  }
  return classes;
}

}  // namespace

Result<std::unique_ptr<ExampleSource>> OpenSynthetic(const DataSpec& spec, const DataNeeds& needs, std::uint64_t seed,
                                                     const DataLimits& limits) {
  if (spec.samples <= 0) return Invalid("synthetic data needs samples: a number above 0, not {}", spec.samples);
  TANDEM_ASSIGN(const std::int64_t classes, ClassesOf(spec, needs));
  std::vector<Column> inputs;
  for (const DataNeeds::Input& input : needs.inputs) {
    TANDEM_ASSIGN(Column column, FixedColumn(input.name, input.type, input.shape, limits));
    inputs.push_back(std::move(column));
  }
  const DataType type = needs.classes ? DataType::kInt64 : DataType::kFp32;
  TANDEM_ASSIGN(Column target, FixedColumn("target", type, needs.target_shape, limits));
  return std::make_unique<SyntheticSource>(std::move(inputs), std::move(target), spec.samples, classes, seed, limits);
}

}  // namespace tandem::training
