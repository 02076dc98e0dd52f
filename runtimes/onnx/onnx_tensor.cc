#include "runtimes/onnx/onnx_tensor.h"

#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "api/base/format.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxName = 1 << 20;
constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxDimensions = 1024;
constexpr int kString = 8;

// Field numbers of TensorProto.
enum Field : std::uint32_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14,
};

// How elements of one TensorProto.DataType are stored.
struct ElementFacts {
  int bits = 0;  // 0 for strings and unknown types.
  Field typed_field = kRawData;
  int entries_per_element = 1;  // In typed_field; 4-bit types have two elements in an entry.
};

constexpr std::array<ElementFacts, 24> kElements = {{
    {},
    {32, kFloatData},       // FLOAT
    {8, kInt32Data},        // UINT8
    {8, kInt32Data},        // INT8
    {16, kInt32Data},       // UINT16
    {16, kInt32Data},       // INT16
    {32, kInt32Data},       // INT32
    {64, kInt64Data},       // INT64
    {0, kStringData},       // STRING
    {8, kInt32Data},        // BOOL
    {16, kInt32Data},       // FLOAT16
    {64, kDoubleData},      // DOUBLE
    {32, kUint64Data},      // UINT32
    {64, kUint64Data},      // UINT64
    {64, kFloatData, 2},    // COMPLEX64
    {128, kDoubleData, 2},  // COMPLEX128
    {16, kInt32Data},       // BFLOAT16
    {8, kInt32Data},        // FLOAT8E4M3FN
    {8, kInt32Data},        // FLOAT8E4M3FNUZ
    {8, kInt32Data},        // FLOAT8E5M2
    {8, kInt32Data},        // FLOAT8E5M2FNUZ
    {4, kInt32Data},        // UINT4
    {4, kInt32Data},        // INT4
    {4, kInt32Data},        // FLOAT4E2M1
}};

const ElementFacts& FactsOf(int element_type) {
  const auto index = static_cast<std::size_t>(element_type);
  return kElements[index < kElements.size() ? index : 0];
}

class TensorReader {
 public:
  explicit TensorReader(WireFile& file) : file_(file) {}

  Result<OnnxTensorInfo> Read(WireRange message) {
    TANDEM_TRY(file_.ForEach(message, [&](const WireField& field) { return Take(field); }));
    TANDEM_ASSIGN(const std::uint64_t elements, Elements());
    ExternalTensor& tensor = info_.tensor;
    const auto bits = static_cast<std::uint64_t>(FactsOf(tensor.element_type).bits);
    if (bits != 0 && elements > std::numeric_limits<std::int64_t>::max() / bits) {
      return Invalid("{}: shape {} is too large", Named(), Readable(ShapeText(tensor.shape), 100));
    }
    tensor.byte_size = (elements * bits + 7) / 8;
    info_.stored_bytes = tensor.byte_size + string_bytes_;
    if (info_.external && tensor.location.empty()) {
      return Invalid("{} has external data without a location", Named());
    }
    if (location_ != 1) TANDEM_TRY(CheckStored(elements));
    return std::move(info_);
  }

 private:
  Status Take(const WireField& field) {
    ExternalTensor& tensor = info_.tensor;
    if (field.kind == WireField::Kind::kBytes) return TakeBytes(field);
    switch (field.number) {
      case kDims: return AddDimension(field.value);
      case kDataType: tensor.element_type = static_cast<int>(field.value); break;
      case kDataLocation:
        location_ = field.value;
        info_.external |= field.value == 1;
        break;
      case kFloatData:
      case kInt32Data:
      case kInt64Data:
      case kDoubleData:
      case kUint64Data: ++entries_[field.number]; break;
      default: break;
    }
    return {};
  }

  Status TakeBytes(const WireField& field) {
    const std::uint64_t size = field.bytes.size();
    switch (field.number) {
      case kDims: return TakeDims(field.bytes);
      case kName: {
        TANDEM_ASSIGN(info_.tensor.name, file_.Text(field.bytes, kMaxName));
        return {};
      }
      case kRawData: has_raw_ = true, raw_bytes_ = size; return {};
      case kFloatData: entries_[kFloatData] += size / 4; return {};
      case kDoubleData: entries_[kDoubleData] += size / 8; return {};
      case kStringData: ++entries_[kStringData], string_bytes_ += size; return {};
      case kInt32Data:
      case kInt64Data:
      case kUint64Data: {
        TANDEM_ASSIGN(const std::uint64_t count, file_.CountVarints(field.bytes));
        entries_[field.number] += count;
        return {};
      }
      case kExternalData: info_.external = true; return TakeExternal(field.bytes);
      default: return {};
    }
  }

  Status AddDimension(std::uint64_t dimension) {
    Shape& shape = info_.tensor.shape;
    if (shape.size() >= kMaxDimensions) return Invalid("{} has more than {} dimensions", Named(), kMaxDimensions);
    shape.push_back(static_cast<std::int64_t>(dimension));
    return {};
  }

  Status TakeDims(WireRange packed) {
    while (!packed.empty()) {
      TANDEM_ASSIGN(const std::uint64_t dimension, file_.NextVarint(packed));
      TANDEM_TRY(AddDimension(dimension));
    }
    return {};
  }

  // A StringStringEntryProto of TensorProto.external_data.
  Status TakeExternal(WireRange message) {
    std::string key;
    std::string value;
    TANDEM_TRY(file_.ForEach(message, [&](const WireField& field) -> Status {
      if (field.kind != WireField::Kind::kBytes || (field.number != 1 && field.number != 2)) return {};
      TANDEM_ASSIGN((field.number == 1 ? key : value), file_.Text(field.bytes, kMaxPath));
      return {};
    }));
    ExternalTensor& tensor = info_.tensor;
    if (key == "location") {
      if (!tensor.location.empty()) return Invalid("{} has two locations of external data", Named());
      if (value.empty()) return Invalid("{} has an empty location of external data", Named());
      tensor.location = std::move(value);
      return {};
    }
    // Weights in the memory layout of one machine and one release, taken without any check.
    if (key.starts_with("prepacked")) {
      return Fail(ErrorCode::kUnsupported, "{} has external data with '{}', which is not served", Named(),
                  Readable(key, 100));
    }
    if (key != "offset" && key != "length") return {};
    std::uint64_t& number = key == "offset" ? tensor.offset : tensor.length;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || stop != end || number > std::numeric_limits<std::int64_t>::max()) {
      return Invalid("{}: the {} of its external data is '{}', not a number of bytes", Named(), key,
                     Readable(value, 100));
    }
    return {};
  }

  [[nodiscard]] Result<std::uint64_t> Elements() const {
    const auto elements = ElementCount(info_.tensor.shape);
    if (!elements) return Invalid("{}: {}", Named(), elements.error().message);
    return static_cast<std::uint64_t>(*elements);
  }

  // That the elements inside the model are as many as the shape says.
  [[nodiscard]] Status CheckStored(std::uint64_t elements) const {
    const ExternalTensor& tensor = info_.tensor;
    const ElementFacts& facts = FactsOf(tensor.element_type);
    // A type that ONNX Runtime may not know either: then it says so, before it could allocate anything.
    if (facts.bits == 0 && tensor.element_type != kString) return {};
    if (has_raw_ && tensor.element_type != kString) {
      if (raw_bytes_ == tensor.byte_size) return {};
      return Invalid("{} has {} bytes by its type and shape {}, but {} of data", Named(), tensor.byte_size,
                     Readable(ShapeText(tensor.shape), 100), raw_bytes_);
    }
    std::uint64_t expected = elements * static_cast<std::uint64_t>(facts.entries_per_element);
    if (facts.bits == 4) expected = (elements + 1) / 2;
    if (entries_[facts.typed_field] == expected) return {};
    return Invalid("{} has {} elements by its shape {}, but {} in its data", Named(), expected,
                   Readable(ShapeText(tensor.shape), 100), entries_[facts.typed_field]);
  }

  [[nodiscard]] std::string Named() const { return Format("tensor '{}'", Readable(info_.tensor.name, 100)); }

  WireFile& file_;
  OnnxTensorInfo info_;
  std::uint64_t location_ = 0;  // TensorProto.DataLocation; 1: external.
  bool has_raw_ = false;
  std::uint64_t raw_bytes_ = 0;
  std::uint64_t string_bytes_ = 0;
  std::array<std::uint64_t, 16> entries_{};  // By field number.
};

}  // namespace

Result<OnnxTensorInfo> ReadOnnxTensor(WireFile& file, WireRange message) {
  return TensorReader(file).Read(message);
}

}  // namespace tandem
