#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

#include "api/base/buffer.h"
#include "api/base/data_type.h"
#include "api/base/result.h"
#include "api/base/shape.h"
#include "api/base/tensor.h"
#include "runtimes/training/data/example_source.h"

namespace tandem::training {

// One tensor of the batches that a source makes: what its examples look like.
struct Column {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;                // Of one example, none of it free.
  std::size_t elements = 0;   // Of one example.
  std::size_t row_bytes = 0;  // The same.

  // Checks that a batch of it can be made at all.
  [[nodiscard]] static Result<Column> Make(std::string name, DataType type, Shape shape, const DataLimits& limits);
};

// The tensor of a batch while it is filled row by row.
class BatchBuffer {
 public:
  [[nodiscard]] static Result<BatchBuffer> Make(const Column& column, std::size_t rows, const DataLimits& limits);

  [[nodiscard]] std::byte* row(std::size_t index) { return data_.data() + index * row_bytes_; }
  [[nodiscard]] Tensor Finish(const Column& column) &&;

 private:
  BatchBuffer(AlignedBuffer data, std::size_t row_bytes, std::size_t rows)
      : data_(std::move(data)), row_bytes_(row_bytes), rows_(rows) {}

  AlignedBuffer data_;
  std::size_t row_bytes_;
  std::size_t rows_;
};

// The shape of one example as the model wants it, if that of the data fits: the same but for dimensions of 1, free ones
// taken from the data. The error says both; `what` names the array.
[[nodiscard]] Result<Shape> FitShape(std::span<const std::int64_t> wanted, std::span<const std::int64_t> given,
                                     const std::string& what);

// kCancelled when `stop` asks for it.
[[nodiscard]] Status CheckGoesOn(const std::stop_token& stop);

// The target of sources with one number for each example.
[[nodiscard]] Result<Column> SingleTarget(const DataNeeds& needs, const DataLimits& limits);

}  // namespace tandem::training
