#include "api/wire/json_tensor.h"

#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "api/base/format.h"

namespace tandem {
namespace {

namespace ondemand = simdjson::ondemand;

// The place in the shape while the arrays are walked.
struct Walk {
  const Tensor& tensor;
  const std::shared_ptr<ByteBudget>& budget;
  Shape rest;                  // rest[d]: elements of one array at depth d, all levels below it counted.
  std::int64_t index = 0;      // Of the next element, flattened.
  std::size_t leaf_depth = 0;  // Depth of the arrays that hold elements; 0 until the first.
};

std::string_view Takes(DataType type) {
  switch (type) {
    case DataType::kBool: return "true, false, 0 or 1";
    case DataType::kUint8: return "integers from 0 to 255";
    case DataType::kUint16: return "integers from 0 to 65535";
    case DataType::kUint32: return "integers from 0 to 4294967295";
    case DataType::kUint64: return "integers from 0 to 18446744073709551615";
    case DataType::kInt8: return "integers from -128 to 127";
    case DataType::kInt16: return "integers from -32768 to 32767";
    case DataType::kInt32: return "integers from -2147483648 to 2147483647";
    case DataType::kInt64: return "integers from -9223372036854775808 to 9223372036854775807";
    case DataType::kFp32: return "numbers that fit 32 bits, NaN, Infinity or -Infinity";
    case DataType::kFp64: return "numbers that fit 64 bits, NaN, Infinity or -Infinity";
    case DataType::kFp16:
    case DataType::kBf16: return "binary data only";
    case DataType::kBytes: return "strings";
  }
  return "";
}

std::unexpected<Error> RefuseElement(const Walk& walk, ondemand::value& value) {
  return Invalid("input '{}': data element {} is {} but {} takes {}", Excerpt(walk.tensor.name), walk.index,
                 DescribeJson(value), DataTypeName(walk.tensor.type), Takes(walk.tensor.type));
}

std::unexpected<Error> RefuseCount(const Walk& walk, std::size_t depth, std::int64_t needed, std::string_view held) {
  if (depth == 0) {
    return Invalid("input '{}': shape {} needs {} elements but data holds {}", Excerpt(walk.tensor.name),
                   ShapeText(walk.tensor.shape), needed, held);
  }
  return Invalid("input '{}': data does not fit shape {}: an array at depth {} holds {} elements where {} are needed",
                 Excerpt(walk.tensor.name), ShapeText(walk.tensor.shape), depth, held, needed);
}

// Each Store… reads one element, and is false when the value does not fit.
template <typename T>
bool StoreInteger(ondemand::value& value, T& out) {
  if constexpr (std::is_signed_v<T>) {
    std::int64_t wide = 0;
    if (value.get_int64().get(wide) || !std::in_range<T>(wide)) return false;
    out = static_cast<T>(wide);
  } else {
    std::uint64_t wide = 0;
    if (value.get_uint64().get(wide) || !std::in_range<T>(wide)) return false;
    out = static_cast<T>(wide);
  }
  return true;
}

bool StoreBool(ondemand::value& value, std::uint8_t& out) {
  bool flag = false;
  if (value.get_bool().get(flag) == simdjson::SUCCESS) {
    out = flag ? 1 : 0;
    return true;
  }
  return StoreInteger(value, out) && out <= 1;
}

template <typename T>
bool StoreNonFinite(ondemand::value& value, T& out) {
  const std::string_view token = JsonToken(value);
  if (!IsNonFiniteToken(token)) return false;
  out = token.ends_with("NaN") ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
  if (token.starts_with('-')) out = -out;
  return true;
}

bool StoreFp64(ondemand::value& value, double& out) {
  return value.get_double().get(out) == simdjson::SUCCESS || StoreNonFinite(value, out);
}

// Rounds the text itself to a float, where rounding it to a double first could round twice or overflow.
bool StoreExactFp32(ondemand::value& value, double wide, float& out) {
  const std::string_view token = JsonToken(value);
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), out);
  if (error == std::errc::result_out_of_range && std::abs(wide) < 1) {
    out = static_cast<float>(wide);
    return true;
  }
  return error == std::errc{};
}

inline bool StoreFp32(ondemand::value& value, float& out) {
  double wide = 0;
  if (value.get_double().get(wide)) return StoreNonFinite(value, out);
  constexpr std::uint64_t kDroppedBits = (std::uint64_t{1} << 29) - 1;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 28;
  const double size = std::abs(wide);
  if ((std::bit_cast<std::uint64_t>(wide) & kDroppedBits) == kHalf || size > FLT_MAX || (size < FLT_MIN && size > 0))
      [[unlikely]] {
    return StoreExactFp32(value, wide, out);
  }
  out = static_cast<float>(wide);
  return true;
}

template <typename Store>
Status WalkArray(Walk& walk, ondemand::array array, std::size_t depth, Store& store);

template <typename Store>
Status WalkNested(Walk& walk, ondemand::value value, std::size_t depth, std::int64_t position, Store& store) {
  if (depth + 1 >= walk.tensor.shape.size()) {
    return Invalid("input '{}': data is nested deeper than the {} dimensions of shape {}", Excerpt(walk.tensor.name),
                   walk.tensor.shape.size(), ShapeText(walk.tensor.shape));
  }
  if (position == walk.tensor.shape[depth]) {
    return RefuseCount(walk, depth, walk.tensor.shape[depth], Format("more than {}", position));
  }
  ondemand::array inner;
  const auto error = value.get_array().get(inner);
  if (error == simdjson::INCORRECT_TYPE) {
    return Invalid("input '{}': data mixes arrays and values at depth {}: found {}", Excerpt(walk.tensor.name), depth,
                   DescribeJson(value));
  }
  if (error) return MalformedJson(error, JsonPath{.member = "data"});
  return WalkArray(walk, inner, depth + 1, store);
}

template <typename Store>
Status WalkArray(Walk& walk, ondemand::array array, std::size_t depth, Store& store) {
  std::int64_t held = 0;
  bool nested = false;
  for (auto result : array) {
    ondemand::value value;
    if (const auto error = std::move(result).get(value)) return MalformedJson(error, JsonPath{.member = "data"});
    if (held == 0) nested = JsonToken(value).starts_with('[');
    if (nested) {
      TANDEM_TRY(WalkNested(walk, value, depth, held, store));
    } else {
      if (held == walk.rest[depth]) return RefuseCount(walk, depth, held, Format("more than {}", held));
      if (!store(value, walk.index)) [[unlikely]]
        return RefuseElement(walk, value);
      ++walk.index;
    }
    ++held;
  }
  const std::int64_t needed = nested ? walk.tensor.shape[depth] : walk.rest[depth];
  if (held != needed) return RefuseCount(walk, depth, needed, std::to_string(held));
  if (!nested) {
    if (walk.leaf_depth == 0) walk.leaf_depth = depth + 1;
    if (walk.leaf_depth != depth + 1) {
      return Invalid("input '{}': data is nested {} levels deep in one place and {} in another",
                     Excerpt(walk.tensor.name), walk.leaf_depth, depth + 1);
    }
  }
  return {};
}

template <typename T, typename Convert>
Result<Bytes> ReadFixed(Walk& walk, ondemand::array array, Convert convert) {
  const std::size_t size = static_cast<std::size_t>(walk.rest[0]) * sizeof(T);
  BudgetShare share(walk.budget);
  if (!share.Take(size)) return NoRoomInBudget();
  AlignedBuffer buffer(size);
  T* const out = reinterpret_cast<T*>(buffer.data());
  auto store = [out, convert](ondemand::value& value, std::int64_t index) { return convert(value, out[index]); };
  TANDEM_TRY(WalkArray(walk, array, 0, store));
  return OwnShared(std::move(buffer), std::move(share));
}

template <typename T>
Result<Bytes> ReadIntegers(Walk& walk, ondemand::array array) {
  return ReadFixed<T>(walk, array, [](ondemand::value& value, T& out) { return StoreInteger<T>(value, out); });
}

Result<Bytes> ReadStrings(Walk& walk, ondemand::array array) {
  struct Owner {
    std::string text;
    BudgetShare share;
  };
  const auto owner = std::make_shared<Owner>();
  owner->share = BudgetShare(walk.budget);
  std::string& text = owner->text;
  text.reserve(static_cast<std::size_t>(walk.rest[0]) * sizeof(std::uint32_t));
  if (!owner->share.Take(text.capacity())) return NoRoomInBudget();
  bool room = true;
  auto store = [&](ondemand::value& value, std::int64_t) {
    std::string_view element;
    if (value.get_string().get(element)) return false;
    const std::size_t before = text.capacity();
    AppendBytesElement(element, text);
    if (text.capacity() != before) [[unlikely]]
      room = room && owner->share.Take(text.capacity() - before);
    return room;
  };
  const Status walked = WalkArray(walk, array, 0, store);
  if (!room) return NoRoomInBudget();
  TANDEM_TRY(walked);
  return Bytes{std::as_bytes(std::span(text)), owner};
}

}  // namespace

Result<Bytes> ReadJsonTensor(ondemand::array array, const Tensor& tensor, std::size_t json_bytes,
                             const std::shared_ptr<ByteBudget>& budget) {
  const auto count = ElementCount(tensor.shape);
  if (!count) return Invalid("input '{}': {}", Excerpt(tensor.name), count.error().message);
  Walk walk{.tensor = tensor, .budget = budget, .rest = Shape(tensor.shape.size() + 1, 1)};
  for (std::size_t d = tensor.shape.size(); d > 0; --d) walk.rest[d - 1] = walk.rest[d] * tensor.shape[d - 1];
  // "0," or "\"\","
  const std::size_t least = tensor.type == DataType::kBytes ? 3 : 2;
  if (static_cast<std::uint64_t>(*count) > json_bytes / least) return RefuseCount(walk, 0, *count, "fewer");
  switch (tensor.type) {
    case DataType::kBool: return ReadFixed<std::uint8_t>(walk, array, StoreBool);
    case DataType::kUint8: return ReadIntegers<std::uint8_t>(walk, array);
    case DataType::kUint16: return ReadIntegers<std::uint16_t>(walk, array);
    case DataType::kUint32: return ReadIntegers<std::uint32_t>(walk, array);
    case DataType::kUint64: return ReadIntegers<std::uint64_t>(walk, array);
    case DataType::kInt8: return ReadIntegers<std::int8_t>(walk, array);
    case DataType::kInt16: return ReadIntegers<std::int16_t>(walk, array);
    case DataType::kInt32: return ReadIntegers<std::int32_t>(walk, array);
    case DataType::kInt64: return ReadIntegers<std::int64_t>(walk, array);
    case DataType::kFp32: return ReadFixed<float>(walk, array, [](auto& v, float& out) { return StoreFp32(v, out); });
    case DataType::kFp64: return ReadFixed<double>(walk, array, [](auto& v, double& out) { return StoreFp64(v, out); });
    case DataType::kBytes: return ReadStrings(walk, array);
    case DataType::kFp16:
    case DataType::kBf16: break;
  }
  return Invalid("input '{}': {} has no JSON form: send it as binary data ('binary_data_size')", Excerpt(tensor.name),
                 DataTypeName(tensor.type));
}

}  // namespace tandem
