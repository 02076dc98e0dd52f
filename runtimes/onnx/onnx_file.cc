#include "runtimes/onnx/onnx_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "runtimes/onnx/readable_text.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

// Protobuf itself stops at 100 nested messages, and each subgraph is three.
constexpr int kMaxGraphDepth = 32;
constexpr std::uint64_t kMaxFileSize = std::numeric_limits<std::int32_t>::max();  // Protobuf's own limit.
constexpr std::size_t kMaxText = 1 << 20;
constexpr std::size_t kMaxPath = 4096;

// Bits per element by TensorProto.DataType; 0 for strings and unknown types.
constexpr std::array<int, 24> kElementBits = {0,  32, 8,  8,   16, 16, 32, 64, 0, 8, 16, 64,
                                              32, 64, 64, 128, 16, 8,  8,  8,  8, 4, 4,  4};

// One visit of a whole model. The numbers below are the field numbers of onnx.proto.
class OnnxWalker {
 public:
  explicit OnnxWalker(WireFile& file) : file_(file) {}

  Result<OnnxFileInfo> Walk() {
    TANDEM_TRY(VisitModel(file_.whole()));
    if (info_.ir_version <= 0) return Invalid("it has no IR version, so it is not an ONNX model");
    if (!has_graph_) return Invalid("it has no graph");
    if (info_.opsets.empty()) return Invalid("it imports no operator set (opset_import)");
    return std::move(info_);
  }

 private:
  // Calls visit(field) for every field of a message.
  template <typename Visit>
  Status ForEach(WireRange message, Visit visit) {
    while (!message.empty()) {
      TANDEM_ASSIGN(const WireField field, file_.Next(message));
      TANDEM_TRY(visit(field));
    }
    return {};
  }

  static bool IsBytes(const WireField& field) { return field.kind == WireField::Kind::kBytes; }
  static bool IsVarint(const WireField& field) { return field.kind == WireField::Kind::kVarint; }

  // Protobuf merges a singular message that occurs twice. No writer emits that, and merging could join two harmless
  // halves to a tensor that we never saw whole.
  static Status Once(bool& seen, const WireField& field) {
    if (std::exchange(seen, true)) return Invalid("the message at byte {} occurs twice", field.bytes.begin);
    return {};
  }

  Status VisitModel(WireRange message) {
    std::string producer_version;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (IsVarint(field) && field.number == 1) info_.ir_version = static_cast<std::int64_t>(field.value);
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 2: return TakeText(field, info_.producer);
        case 3: return TakeText(field, producer_version);
        case 7: TANDEM_TRY(Once(has_graph_, field)); return VisitGraph(field.bytes, 0);
        case 8: return VisitOpset(field.bytes);
        case 20: return VisitTraining(field.bytes);
        case 25: return VisitFunction(field.bytes);
        default: return {};
      }
    }));
    if (!producer_version.empty()) info_.producer += " " + producer_version;
    return {};
  }

  Status TakeText(const WireField& field, std::string& out) {
    TANDEM_ASSIGN(out, file_.Text(field.bytes, kMaxText));
    return {};
  }

  Status VisitOpset(WireRange message) {
    OpsetImport opset;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (IsBytes(field) && field.number == 1) return TakeText(field, opset.domain);
      if (IsVarint(field) && field.number == 2) opset.version = static_cast<std::int64_t>(field.value);
      return {};
    }));
    info_.opsets.push_back(std::move(opset));
    return {};
  }

  Status VisitTraining(WireRange message) {
    bool initialization = false;
    bool algorithm = false;
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field) || (field.number != 1 && field.number != 2)) return {};
      TANDEM_TRY(Once(field.number == 1 ? initialization : algorithm, field));
      return VisitGraph(field.bytes, 1);
    });
  }

  Status VisitFunction(WireRange message) {
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      if (field.number == 7) return VisitNode(field.bytes, 1);
      if (field.number == 11) return VisitAttribute(field.bytes, 1);
      return {};
    });
  }

  Status VisitGraph(WireRange message, int depth) {
    if (depth > kMaxGraphDepth) return Invalid("its graphs are nested more than {} deep", kMaxGraphDepth);
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 1: return VisitNode(field.bytes, depth);
        case 2: return depth == 0 ? TakeText(field, info_.graph_name) : Status{};
        case 5: return VisitTensor(field.bytes, depth == 0);
        case 11: return depth == 0 ? VisitInput(field.bytes) : Status{};
        case 15: return VisitSparse(field.bytes);
        default: return {};
      }
    });
  }

  Status VisitNode(WireRange message, int depth) {
    return ForEach(message, [&](const WireField& field) -> Status {
      return IsBytes(field) && field.number == 5 ? VisitAttribute(field.bytes, depth) : Status{};
    });
  }

  Status VisitAttribute(WireRange message, int depth) {
    bool tensor = false;
    bool graph = false;
    bool sparse = false;
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 5: TANDEM_TRY(Once(tensor, field)); return VisitTensor(field.bytes, false);
        case 6: TANDEM_TRY(Once(graph, field)); return VisitGraph(field.bytes, depth + 1);
        case 10: return VisitTensor(field.bytes, false);
        case 11: return VisitGraph(field.bytes, depth + 1);
        case 22: TANDEM_TRY(Once(sparse, field)); return VisitSparse(field.bytes);
        case 23: return VisitSparse(field.bytes);
        default: return {};
      }
    });
  }

  Status VisitSparse(WireRange message) {
    bool values = false;
    bool indices = false;
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field) || (field.number != 1 && field.number != 2)) return {};
      TANDEM_TRY(Once(field.number == 1 ? values : indices, field));
      return VisitTensor(field.bytes, false);
    });
  }

  Status VisitTensor(WireRange message, bool main_initializer) {
    ExternalTensor tensor;
    tensor.main_initializer = main_initializer;
    std::uint64_t string_bytes = 0;
    bool external = false;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (IsVarint(field)) {
        if (field.number == 1) tensor.shape.push_back(static_cast<std::int64_t>(field.value));
        if (field.number == 2) tensor.element_type = static_cast<int>(field.value);
        if (field.number == 14) external |= field.value == 1;
      } else if (IsBytes(field)) {
        switch (field.number) {
          case 1: return TakeDims(field.bytes, tensor.shape);
          case 6: string_bytes += field.bytes.size(); break;
          case 8: return TakeText(field, tensor.name);
          case 13: external = true; return VisitExternalEntry(field.bytes, tensor);
          default: break;
        }
      }
      return {};
    }));
    TANDEM_ASSIGN(tensor.byte_size, TensorBytes(tensor));
    info_.tensor_bytes += tensor.byte_size + string_bytes;
    if (!external) return {};
    if (tensor.location.empty()) return Invalid("{} has external data without a location", Named(tensor));
    info_.external.push_back(std::move(tensor));
    return {};
  }

  Status TakeDims(WireRange packed, Shape& shape) {
    while (!packed.empty()) {
      TANDEM_ASSIGN(const std::uint64_t dimension, file_.NextVarint(packed));
      if (shape.size() >= kMaxText) return Invalid("a tensor has too many dimensions, at byte {}", packed.begin);
      shape.push_back(static_cast<std::int64_t>(dimension));
    }
    return {};
  }

  static std::string Named(const ExternalTensor& tensor) {
    return std::format("tensor '{}'", Readable(tensor.name, 100));
  }

  static Result<std::uint64_t> TensorBytes(const ExternalTensor& tensor) {
    const auto elements = ElementCount(tensor.shape);
    if (!elements) return Invalid("{}: {}", Named(tensor), elements.error().message);
    const auto type = static_cast<std::size_t>(tensor.element_type);
    const auto bits = static_cast<std::uint64_t>(type < kElementBits.size() ? kElementBits[type] : 0);
    const auto count = static_cast<std::uint64_t>(*elements);
    if (bits != 0 && count > std::numeric_limits<std::int64_t>::max() / bits) {
      return Invalid("{}: shape {} is too large", Named(tensor), Readable(ShapeText(tensor.shape), 100));
    }
    return (count * bits + 7) / 8;
  }

  // A StringStringEntryProto of TensorProto.external_data.
  Status VisitExternalEntry(WireRange message, ExternalTensor& tensor) {
    std::string key;
    std::string value;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field) || (field.number != 1 && field.number != 2)) return {};
      TANDEM_ASSIGN((field.number == 1 ? key : value), file_.Text(field.bytes, kMaxPath));
      return {};
    }));
    if (key == "location") {
      if (!tensor.location.empty()) return Invalid("{} has two locations of external data", Named(tensor));
      if (value.empty()) return Invalid("{} has an empty location of external data", Named(tensor));
      tensor.location = std::move(value);
      return {};
    }
    if (key != "offset" && key != "length") return {};
    std::uint64_t& number = key == "offset" ? tensor.offset : tensor.length;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || stop != end || number > std::numeric_limits<std::int64_t>::max()) {
      return Invalid("{}: the {} of its external data is '{}', not a number of bytes", Named(tensor), key,
                     Readable(value, 100));
    }
    return {};
  }

  // ValueInfoProto.type.tensor_type.shape.dim: looks for a dimension without a fixed value.
  Status VisitInput(WireRange value_info) {
    return ForEachNested(value_info, 2, [&](WireRange type) {
      return ForEachNested(type, 1, [&](WireRange tensor_type) {
        return ForEachNested(tensor_type, 2, [&](WireRange shape) {
          return ForEachNested(shape, 1, [&](WireRange dimension) { return VisitDimension(dimension); });
        });
      });
    });
  }

  template <typename Visit>
  Status ForEachNested(WireRange message, std::uint32_t number, Visit visit) {
    return ForEach(message, [&](const WireField& field) -> Status {
      return IsBytes(field) && field.number == number ? visit(field.bytes) : Status{};
    });
  }

  Status VisitDimension(WireRange message) {
    bool fixed = false;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      fixed |= IsVarint(field) && field.number == 1 && static_cast<std::int64_t>(field.value) >= 0;
      return {};
    }));
    info_.variable_inputs |= !fixed;
    return {};
  }

  WireFile& file_;
  OnnxFileInfo info_;
  bool has_graph_ = false;
};

Result<OnnxFileInfo> Inspect(const std::filesystem::path& path) {
  TANDEM_ASSIGN(WireFile file, WireFile::Open(path));
  if (file.size() == 0) return Invalid("it is empty");
  if (file.size() > kMaxFileSize) {
    return Invalid("it has {} bytes; a model larger than 2 GB must keep its weights as external data", file.size());
  }
  return OnnxWalker(file).Walk();
}

}  // namespace

Result<OnnxFileInfo> InspectOnnxFile(const std::filesystem::path& path) {
  auto info = Inspect(path);
  if (!info) {
    info.error().message = std::format("'{}' is not a valid ONNX model: {}", path.string(), info.error().message);
  }
  return info;
}

}  // namespace tandem
