#include "server/infer/classification.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace tandem {
namespace {

// They are found and written by the thread that runs models.
constexpr std::int64_t kMaxClasses = 100'000;

// Calls visit(values) with the tensor's elements as a typed span; half precision has no C++ type to order by.
template <typename Visitor>
Status VisitValues(const Tensor& t, Visitor visit) {
  const auto as = [&]<typename T>(T) {
    std::vector<T> values(t.data.size() / sizeof(T));
    std::memcpy(values.data(), t.data.view.data(), values.size() * sizeof(T));
    visit(values);
    return Status();
  };
  switch (t.type) {
    case DataType::kBool:
    case DataType::kUint8: return as(std::uint8_t{});
    case DataType::kUint16: return as(std::uint16_t{});
    case DataType::kUint32: return as(std::uint32_t{});
    case DataType::kUint64: return as(std::uint64_t{});
    case DataType::kInt8: return as(std::int8_t{});
    case DataType::kInt16: return as(std::int16_t{});
    case DataType::kInt32: return as(std::int32_t{});
    case DataType::kInt64: return as(std::int64_t{});
    case DataType::kFp32: return as(float{});
    case DataType::kFp64: return as(double{});
    case DataType::kFp16:
    case DataType::kBf16:
    case DataType::kBytes: break;
  }
  return Invalid("output '{}' is {} and cannot be classified", t.name, DataTypeName(t.type));
}

// NaN sorts last, so that the order is total.
template <typename T>
bool Greater(T a, T b) {
  if (a != a) return false;
  if (b != b) return true;
  return a > b;
}

template <typename T>
void AppendTop(std::span<const T> values, std::size_t top, const std::vector<std::string>& labels, std::string& out) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return Greater(values[a], values[b]) || (!Greater(values[b], values[a]) && a < b);
  };
  // A heap of the best so far, the worst of them on top: most of many values are looked at once and passed over.
  std::vector<std::size_t> order;
  order.reserve(top);
  for (std::size_t i = 0; i < values.size() && top > 0; ++i) {
    if (order.size() == top) {
      if (!before(i, order.front())) continue;
      std::ranges::pop_heap(order, before);
      order.pop_back();
    }
    order.push_back(i);
    std::ranges::push_heap(order, before);
  }
  std::ranges::sort_heap(order, before);
  for (std::size_t i = 0; i < top; ++i) {
    std::string text = std::to_string(values[order[i]]) + ":" + std::to_string(order[i]);
    if (order[i] < labels.size()) text += ":" + labels[order[i]];
    AppendBytesElement(text, out);
  }
}

}  // namespace

Result<Tensor> Classify(const Tensor& scores, std::uint32_t count, bool batched,
                        const std::vector<std::string>& labels) {
  const std::int64_t rows = batched && !scores.shape.empty() ? scores.shape[0] : 1;
  TANDEM_ASSIGN(const std::int64_t elements, ElementCount(scores.shape));
  const std::int64_t per_row = rows == 0 ? 0 : elements / rows;
  const std::int64_t top = std::min<std::int64_t>(count, per_row);
  if (top > 0 && rows > kMaxClasses / top) {
    return Invalid("output '{}': the {} best classes of {} rows are asked for; at most {} in one answer", scores.name,
                   top, rows, kMaxClasses);
  }
  if (scores.type != DataType::kBytes) TANDEM_TRY(CheckTensorData(scores));

  std::string out;
  TANDEM_TRY(VisitValues(scores, [&](const auto& values) {
    const std::span all(values);
    for (std::int64_t row = 0; row < rows; ++row) {
      AppendTop(all.subspan(static_cast<std::size_t>(row * per_row), static_cast<std::size_t>(per_row)),
                static_cast<std::size_t>(top), labels, out);
    }
  }));
  AlignedBuffer buffer(out.size());
  std::memcpy(buffer.data(), out.data(), out.size());
  return Tensor{.name = scores.name,
                .type = DataType::kBytes,
                .shape = batched ? Shape{rows, top} : Shape{top},
                .data = Bytes::Own(std::move(buffer))};
}

}  // namespace tandem
