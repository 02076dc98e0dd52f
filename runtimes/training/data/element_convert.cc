#include "runtimes/training/data/element_convert.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "api/base/format.h"
#include "api/base/half_float.h"

namespace tandem::training {
namespace {

// How each type lies in memory, and the number that it stands for.
template <typename T>
struct Plain {
  using Stored = T;
  using Number = T;
  static Number Load(Stored value) { return value; }
  static Stored Store(Number value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  using Number = float;
  static Number Load(Stored value) { return FromFp16(value); }
  static Stored Store(Number value) { return ToFp16(value); }
};
struct Brain {
  using Stored = std::uint16_t;
  using Number = float;
  static Number Load(Stored value) { return FromBf16(value); }
  static Stored Store(Number value) { return ToBf16(value); }
};
struct Truth {
  using Stored = std::uint8_t;
  using Number = std::uint8_t;
  static Number Load(Stored value) { return value != 0 ? 1 : 0; }
  static Stored Store(Number value) { return value; }
};

template <typename F>
auto Visit(DataType type, F f) {
  switch (type) {
    case DataType::kBool: return f(Truth{});
    case DataType::kUint8: return f(Plain<std::uint8_t>{});
    case DataType::kUint16: return f(Plain<std::uint16_t>{});
    case DataType::kUint32: return f(Plain<std::uint32_t>{});
    case DataType::kUint64: return f(Plain<std::uint64_t>{});
    case DataType::kInt8: return f(Plain<std::int8_t>{});
    case DataType::kInt16: return f(Plain<std::int16_t>{});
    case DataType::kInt32: return f(Plain<std::int32_t>{});
    case DataType::kInt64: return f(Plain<std::int64_t>{});
    case DataType::kFp16: return f(Half{});
    case DataType::kFp32: return f(Plain<float>{});
    case DataType::kFp64: return f(Plain<double>{});
    case DataType::kBf16: return f(Brain{});
    case DataType::kBytes: break;
  }
  std::unreachable();
}

// False when the other type has nothing for the number.
template <typename To, typename Number>
bool ConvertOne(Number number, typename To::Stored& out) {
  using Target = typename To::Number;
  if constexpr (std::is_floating_point_v<Target>) {
    out = To::Store(static_cast<Target>(number));
    return std::isfinite(To::Load(out));
  } else if constexpr (std::is_integral_v<Number>) {
    out = To::Store(static_cast<Target>(number));
    if constexpr (std::is_same_v<To, Truth>) return number == 0 || number == 1;
    return std::in_range<Target>(number);
  } else {
    return false;
  }
}

template <typename From, typename To>
bool ConvertAt(const std::byte* in, std::byte* out, std::size_t i) {
  typename From::Stored from;
  typename To::Stored to{};
  std::memcpy(&from, in + i * sizeof from, sizeof from);
  const bool fits = ConvertOne<To>(From::Load(from), to);
  std::memcpy(out + i * sizeof to, &to, sizeof to);
  return fits;
}

template <typename From, typename To>
std::size_t ConvertAll(const std::byte* in, std::byte* out, std::size_t count) {
  // No way out of this loop: it is to become vector instructions.
  bool all_fit = true;
  for (std::size_t i = 0; i < count; ++i) all_fit &= ConvertAt<From, To>(in, out, i);
  if (all_fit) return count;
  std::size_t first = 0;
  while (ConvertAt<From, To>(in, out, first)) ++first;
  return first;
}

}  // namespace

bool IsFloat(DataType type) {
  return type == DataType::kFp16 || type == DataType::kFp32 || type == DataType::kFp64 || type == DataType::kBf16;
}

bool CanConvert(DataType from, DataType to) {
  if (from == DataType::kBytes || to == DataType::kBytes) return false;
  return IsFloat(to) || !IsFloat(from);
}

std::size_t ConvertElements(DataType from, const std::byte* in, DataType to, std::byte* out, std::size_t count) {
  return Visit(from, [&]<typename From>(From) {
    return Visit(to, [&]<typename To>(To) { return ConvertAll<From, To>(in, out, count); });
  });
}

std::string ElementText(DataType type, const std::byte* in) {
  return Visit(type, [&]<typename T>(T) {
    typename T::Stored stored;
    std::memcpy(&stored, in, sizeof stored);
    return Format("{}", T::Load(stored));
  });
}

}  // namespace tandem::training
