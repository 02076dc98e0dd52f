#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "runtimes/training/data/batch_buffer.h"
#include "runtimes/training/data/csv_table.h"
#include "runtimes/training/data/csv_target.h"
#include "runtimes/training/data/element_convert.h"
#include "runtimes/training/data/sources.h"

namespace tandem::training {
namespace {

// The rows of a CSV file.
class CsvSource final : public ExampleSource {
 public:
  CsvSource(CsvTable table, std::vector<std::size_t> fields, Column input, std::size_t target_field, CsvTarget target,
            Column target_column, const DataLimits& limits)
      : table_(std::move(table)),
        fields_(std::move(fields)),
        input_(std::move(input)),
        target_field_(target_field),
        target_(std::move(target)),
        target_column_(std::move(target_column)),
        limits_(limits) {}

  [[nodiscard]] std::int64_t size() const override { return table_.size(); }
  [[nodiscard]] std::int64_t classes() const override { return target_.classes(); }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return target_.names(); }

  [[nodiscard]] Status Read(std::span<const std::int64_t> examples, Batch& into,
                            const std::stop_token& stop) const override {
    TANDEM_ASSIGN(BatchBuffer input, BatchBuffer::Make(input_, examples.size(), limits_));
    TANDEM_ASSIGN(BatchBuffer target, BatchBuffer::Make(target_column_, examples.size(), limits_));
    CsvRow row;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      TANDEM_TRY(CheckGoesOn(stop));
      TANDEM_TRY(table_.Read(examples[i], row));
      if (IsFloat(input_.type)) {
        TANDEM_TRY(Store(examples[i], row, DataType::kFp64, "number", ParseNumber, input.row(i)));
      } else {
        TANDEM_TRY(Store(examples[i], row, DataType::kInt64, "whole number", ParseWhole, input.row(i)));
      }
      TANDEM_TRY(target_.Store(table_, examples[i], row.fields[target_field_], target.row(i)));
    }
    into = Batch{.inputs = {std::move(input).Finish(input_)},
                 .target = std::move(target).Finish(target_column_),
                 .size = std::ssize(examples)};
    return {};
  }

 private:
  // Writes the fields of the input, read by `parse` as elements of `type`.
  template <typename T>
  [[nodiscard]] Status Store(std::int64_t number, const CsvRow& row, DataType type, std::string_view kind,
                             std::optional<T> (*parse)(std::string_view), std::byte* out) const {
    const std::size_t element_bytes = DataTypeSize(input_.type);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string_view field = row.fields[fields_[i]];
      const std::optional<T> value = parse(field);
      if (!value) return table_.BadField(number, fields_[i], NoNumber(field, kind));
      const auto* from = reinterpret_cast<const std::byte*>(&*value);
      if (ConvertElements(type, from, input_.type, out + i * element_bytes, 1) != 1) {
        return table_.BadField(number, fields_[i], NoNumber(field, Format("value of {}", DataTypeName(input_.type))));
      }
    }
    return {};
  }

  // Constant after construction.
  const CsvTable table_;
  const std::vector<std::size_t> fields_;
  const Column input_;
  const std::size_t target_field_;
  const CsvTarget target_;
  const Column target_column_;
  const DataLimits limits_;
};

// The places of the columns that make up the input.
Result<std::vector<std::size_t>> InputFields(const CsvTable& table, const DataSpec& spec, std::size_t target) {
  std::vector<std::size_t> fields;
  if (spec.columns.empty()) {
    for (std::size_t i = 0; i < table.columns().size(); ++i) {
      if (i != target) fields.push_back(i);
    }
    if (fields.empty()) return Invalid("'{}' has no column but the target", Shown(spec.path));
  }
  for (const std::string& name : spec.columns) {
    TANDEM_ASSIGN(const std::size_t field, table.Find(name));
    if (field == target) return Invalid("column '{}' is the target and cannot be an input as well", Shown(name));
    fields.push_back(field);
  }
  return fields;
}

// The model's shape with so many elements.
Result<Shape> ShapeOfColumns(const DataNeeds::Input& input, std::size_t columns) {
  Shape shape = input.shape;
  const auto free = std::ranges::find(shape, -1);
  if (free != shape.end()) *free = 1;
  const bool one_free = std::ranges::find(shape, -1) == shape.end();
  const auto known = one_free ? ElementCount(shape) : Result<std::int64_t>(0);
  const auto wanted = static_cast<std::int64_t>(columns);
  const bool fits = known && *known > 0 && (free != shape.end() ? wanted % *known == 0 : wanted == *known);
  if (!fits) {
    return Invalid("{} columns do not make up input '{}' of shape {}", columns, input.name, ShapeText(input.shape));
  }
  if (free != shape.end()) *free = wanted / *known;
  return shape;
}

}  // namespace

Result<std::unique_ptr<ExampleSource>> OpenCsv(const DataSpec& spec, const DataNeeds& needs, const DataRoot& root,
                                               const DataLimits& limits) {
  if (needs.inputs.size() != 1) {
    return Invalid("CSV data is for models with one input; this one has {}: use arrays", needs.inputs.size());
  }
  const DataNeeds::Input& input = needs.inputs[0];
  TANDEM_ASSIGN(CsvTable table, CsvTable::Open(root, spec.path));
  TANDEM_ASSIGN(const std::size_t target_field, table.Find(spec.target));
  TANDEM_ASSIGN(std::vector<std::size_t> fields, InputFields(table, spec, target_field));
  TANDEM_ASSIGN(Shape shape, ShapeOfColumns(input, fields.size()));
  TANDEM_ASSIGN(Column column, Column::Make(input.name, input.type, std::move(shape), limits));
  TANDEM_ASSIGN(Column target_column, SingleTarget(needs, limits));
  TANDEM_ASSIGN(CsvTarget target, CsvTarget::Make(table, target_field, needs));
  return std::make_unique<CsvSource>(std::move(table), std::move(fields), std::move(column), target_field,
                                     std::move(target), std::move(target_column), limits);
}

}  // namespace tandem::training
