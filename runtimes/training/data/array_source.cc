#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "runtimes/training/data/array_file.h"
#include "runtimes/training/data/batch_buffer.h"
#include "runtimes/training/data/class_labels.h"
#include "runtimes/training/data/element_convert.h"
#include "runtimes/training/data/sources.h"

namespace tandem::training {
namespace {

// An array of the file and the tensor that its rows become.
struct Part {
  Tensor array;
  Column column;

  [[nodiscard]] const std::byte* row(std::int64_t index) const {
    return array.data.view.data() + static_cast<std::size_t>(index) * column.elements * DataTypeSize(array.type);
  }
};

Status Fill(const Part& part, std::int64_t row, std::byte* out) {
  const std::byte* in = part.row(row);
  const std::size_t fine = ConvertElements(part.array.type, in, part.column.type, out, part.column.elements);
  if (fine == part.column.elements) return {};
  const std::string value = ElementText(part.array.type, in + fine * DataTypeSize(part.array.type));
  return Invalid("'{}', row {}: element {} is {}, which is no value of {}", part.array.name, row, fine, value,
                 DataTypeName(part.column.type));
}

// The rows of NumPy arrays.
class ArraySource final : public ExampleSource {
 public:
  ArraySource(std::vector<Part> inputs, Part target, std::int64_t classes, const DataLimits& limits)
      : inputs_(std::move(inputs)), target_(std::move(target)), classes_(classes), limits_(limits) {}

  [[nodiscard]] std::int64_t size() const override { return target_.array.shape[0]; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return no_names_; }

  [[nodiscard]] Status Read(std::span<const std::int64_t> examples, Batch& into,
                            const std::stop_token& stop) const override {
    Batch batch{.inputs = {}, .target = {}, .size = std::ssize(examples)};
    for (const Part& part : inputs_) {
      TANDEM_ASSIGN(Tensor tensor, Gather(part, examples, stop));
      batch.inputs.push_back(std::move(tensor));
    }
    TANDEM_ASSIGN(batch.target, Gather(target_, examples, stop));
    into = std::move(batch);
    return {};
  }

 private:
  [[nodiscard]] Result<Tensor> Gather(const Part& part, std::span<const std::int64_t> examples,
                                      const std::stop_token& stop) const {
    TANDEM_ASSIGN(BatchBuffer buffer, BatchBuffer::Make(part.column, examples.size(), limits_));
    for (std::size_t i = 0; i < examples.size(); ++i) {
      TANDEM_TRY(CheckGoesOn(stop));
      TANDEM_TRY(Fill(part, examples[i], buffer.row(i)));
    }
    return std::move(buffer).Finish(part.column);
  }

  // Constant after construction.
  const std::vector<Part> inputs_;
  const Part target_;
  const std::int64_t classes_;
  const DataLimits limits_;
  const std::vector<std::string> no_names_;
};

// The array of each input, then that of the target.
Result<std::vector<std::string>> ArrayNames(const DataSpec& spec, const DataNeeds& needs) {
  for (const auto& [input, array] : spec.inputs) {
    if (std::ranges::find(needs.inputs, input, &DataNeeds::Input::name) == needs.inputs.end()) {
      return Invalid("data is given for input '{}', which the model does not have", Shown(input));
    }
  }
  std::vector<std::string> names;
  for (const DataNeeds::Input& input : needs.inputs) {
    if (const auto found = spec.inputs.find(input.name); found != spec.inputs.end()) {
      names.push_back(found->second);
    } else {
      names.push_back(spec.inputs.empty() && needs.inputs.size() == 1 ? "x" : input.name);
    }
  }
  names.push_back(spec.target);
  return names;
}

Result<Part> MakePart(Tensor array, const std::string& name, DataType type, std::span<const std::int64_t> wanted,
                      std::int64_t rows, const DataLimits& limits) {
  const std::string what = Format("'{}'", array.name);
  if (array.shape.empty()) return Invalid("{} is a single number; its first dimension is to be the examples", what);
  if (array.shape[0] != rows) {
    return Invalid("{} has {} examples, and the first array {}; they must be equal", what, array.shape[0], rows);
  }
  if (!CanConvert(array.type, type)) {
    return Invalid("{} holds {}, which cannot be made {}{}", what, DataTypeName(array.type), DataTypeName(type),
                   name == "target" ? ": classes are whole numbers" : "");
  }
  TANDEM_ASSIGN(Shape shape, FitShape(wanted, std::span(array.shape).subspan(1), what));
  TANDEM_ASSIGN(Column column, Column::Make(name, type, std::move(shape), limits));
  return Part{.array = std::move(array), .column = std::move(column)};
}

// Looks at every label; gives how many classes there are.
Result<std::int64_t> CheckLabels(const Part& target, const DataNeeds& needs) {
  ClassCount count(needs.class_count);
  std::vector<std::int64_t> labels(target.column.elements);
  for (std::int64_t row = 0; row < target.array.shape[0]; ++row) {
    TANDEM_TRY(Fill(target, row, reinterpret_cast<std::byte*>(labels.data())));
    for (const std::int64_t label : labels) {
      if (!count.Take(label)) return Invalid("'{}', row {}: {}", target.array.name, row, count.Refusal(label));
    }
  }
  return count.count();
}

}  // namespace

Result<std::unique_ptr<ExampleSource>> OpenArrays(const DataSpec& spec, const DataNeeds& needs, const DataRoot& root,
                                                  const DataLimits& limits) {
  TANDEM_ASSIGN(const std::vector<std::string> names, ArrayNames(spec, needs));
  TANDEM_ASSIGN(std::vector<Tensor> arrays, OpenNamedArrays(root, spec.path, names, limits));
  const std::int64_t rows = arrays[0].shape.empty() ? 0 : arrays[0].shape[0];
  std::vector<Part> inputs;
  for (std::size_t i = 0; i < needs.inputs.size(); ++i) {
    const DataNeeds::Input& input = needs.inputs[i];
    TANDEM_ASSIGN(Part part, MakePart(std::move(arrays[i]), input.name, input.type, input.shape, rows, limits));
    inputs.push_back(std::move(part));
  }
  const DataType type = needs.classes ? DataType::kInt64 : DataType::kFp32;
  TANDEM_ASSIGN(Part target, MakePart(std::move(arrays.back()), "target", type, needs.target_shape, rows, limits));
  if (rows == 0) return Invalid("'{}' has no examples", Shown(spec.path));
  std::int64_t classes = 0;
  if (needs.classes) {
    TANDEM_ASSIGN(classes, CheckLabels(target, needs));
  }
  return std::make_unique<ArraySource>(std::move(inputs), std::move(target), classes, limits);
}

}  // namespace tandem::training
