#include "runtimes/training/data/batch_buffer.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace tandem::training {
namespace {

std::vector<std::int64_t> WithoutOnes(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> rest;
  std::ranges::copy_if(shape, std::back_inserter(rest), [](std::int64_t dim) { return dim != 1; });
  return rest;
}

bool Fits(std::span<const std::int64_t> wanted, std::span<const std::int64_t> given) {
  return std::ranges::equal(wanted, given,
                            [](std::int64_t want, std::int64_t have) { return want == have || want < 0; });
}

}  // namespace

Result<Column> Column::Make(std::string name, DataType type, Shape shape, const DataLimits& limits) {
  if (type == DataType::kBytes) {
    return Fail(ErrorCode::kUnsupported, "'{}' takes text, which no training data can be made to be", name);
  }
  TANDEM_ASSIGN(const std::int64_t elements, ElementCount(shape));
  TANDEM_ASSIGN(const std::int64_t bytes, ByteSize(type, shape));
  if (elements == 0) return Invalid("one example of '{}' with shape {} is empty", name, ShapeText(shape));
  if (static_cast<std::uint64_t>(bytes) > limits.batch_bytes) {
    return Fail(ErrorCode::kTooLarge, "one example of '{}' has {} bytes; at most {} make a batch", name, bytes,
                limits.batch_bytes);
  }
  return Column{.name = std::move(name),
                .type = type,
                .shape = std::move(shape),
                .elements = static_cast<std::size_t>(elements),
                .row_bytes = static_cast<std::size_t>(bytes)};
}

Result<BatchBuffer> BatchBuffer::Make(const Column& column, std::size_t rows, const DataLimits& limits) {
  if (rows > limits.batch_bytes / column.row_bytes) {
    return Fail(ErrorCode::kTooLarge, "a batch of {} examples of '{}' has more than {} bytes", rows, column.name,
                limits.batch_bytes);
  }
  try {
    return BatchBuffer(AlignedBuffer(rows * column.row_bytes), column.row_bytes, rows);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge,
                "out of memory: there is no room for a batch of {} examples of '{}', {} bytes each", rows, column.name,
                column.row_bytes);
  }
}

Tensor BatchBuffer::Finish(const Column& column) && {
  Shape shape{static_cast<std::int64_t>(rows_)};
  shape.insert(shape.end(), column.shape.begin(), column.shape.end());
  return {.name = column.name, .type = column.type, .shape = std::move(shape), .data = Bytes::Own(std::move(data_))};
}

Result<Shape> FitShape(std::span<const std::int64_t> wanted, std::span<const std::int64_t> given,
                       const std::string& what) {
  if (Fits(wanted, given)) return Shape(given.begin(), given.end());
  const auto narrow = WithoutOnes(given);
  if (!Fits(WithoutOnes(wanted), narrow)) {
    return Invalid("{} has examples of shape {}, the model wants {}", what, ShapeText(given), ShapeText(wanted));
  }
  Shape shape(wanted.begin(), wanted.end());
  auto next = narrow.begin();
  for (std::int64_t& dim : shape) {
    if (dim != 1) dim = *next++;
  }
  return shape;
}

Status CheckGoesOn(const std::stop_token& stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "reading of training data was stopped");
  return {};
}

Result<Column> SingleTarget(const DataNeeds& needs, const DataLimits& limits) {
  Shape wanted = needs.target_shape;
  std::ranges::replace(wanted, -1, 1);
  TANDEM_ASSIGN(Shape shape, FitShape(wanted, {}, "the target, one number for each example,"));
  return Column::Make("target", needs.classes ? DataType::kInt64 : DataType::kFp32, std::move(shape), limits);
}

}  // namespace tandem::training
