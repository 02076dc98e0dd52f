#include "runtimes/onnx/onnx_file.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "api/base/format.h"
#include "runtimes/onnx/function_calls.h"
#include "runtimes/onnx/readable_text.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

// Protobuf itself stops at 100 nested messages, and each subgraph is three.
constexpr int kMaxGraphDepth = 32;
constexpr std::uint64_t kMaxFileSize = std::numeric_limits<std::int32_t>::max();  // Protobuf's own limit.
constexpr std::size_t kMaxText = 1 << 20;
constexpr std::size_t kMaxOperatorName = 4096;
constexpr std::uint64_t kMaxTensors = 1'000'000;

// Kernels of ONNX Runtime 1.21 that read or write wherever the values of one of their inputs point to.
struct UncheckedIndex {
  std::string_view op;
  std::size_t place;  // Of the input, from 0.
};
constexpr UncheckedIndex kUncheckedIndices[] = {{"MaxUnpool", 1}, {"RoiAlign", 2}, {"Trilu", 1}};
constexpr std::size_t kMostIndexPlace = 2;

// Operators that treat each element by itself, or only count them.
constexpr std::string_view kElementwise[] = {
    "Abs",     "Add",     "And",   "Cast",    "Ceil",     "Clip",       "Cos",  "Div",   "Equal",
    "Erf",     "Exp",     "Floor", "Greater", "Identity", "LeakyRelu",  "Less", "Log",   "Mul",
    "Neg",     "NonZero", "Not",   "Or",      "Pow",      "Reciprocal", "Relu", "Round", "Shape",
    "Sigmoid", "Sign",    "Sin",   "Size",    "Sqrt",     "Sub",        "Tanh", "Where", "Xor"};

// Whether a CallName is that of ONNX's own operator `op`.
bool IsOnnx(std::string_view call, std::string_view op) {
  return call.starts_with(':') && call.substr(1) == op;
}

// One visit of a whole model. The numbers below are the field numbers of onnx.proto.
class OnnxWalker {
 public:
  explicit OnnxWalker(WireFile& file) : file_(file) {}

  Result<OnnxFileInfo> Walk() {
    TANDEM_TRY(VisitModel(file_.whole()));
    if (info_.ir_version <= 0) return Invalid("it has no IR version, so it is not an ONNX model");
    if (!has_graph_) return Invalid("it has no graph");
    if (info_.opsets.empty()) return Invalid("it imports no operator set (opset_import)");
    TANDEM_ASSIGN(info_.nodes, ExpandedNodes(main_, functions_));
    TANDEM_TRY(CheckIndices());
    info_.elementwise = std::ranges::all_of(main_.calls, [](const auto& call) {
      return std::ranges::any_of(kElementwise, [&](std::string_view op) { return IsOnnx(call.first, op); });
    });
    return std::move(info_);
  }

 private:
  template <typename Visit>
  Status ForEach(WireRange message, Visit visit) {
    return file_.ForEach(message, std::move(visit));
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
        case 7: TANDEM_TRY(Once(has_graph_, field)); return VisitGraph(field.bytes, 0, main_);
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

  Status TakeName(const WireField& field, std::string& out) {
    TANDEM_ASSIGN(out, file_.Text(field.bytes, kMaxOperatorName));
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
      return VisitGraph(field.bytes, 1, main_);
    });
  }

  Status VisitFunction(WireRange message) {
    FunctionBody body;
    std::string name;
    std::string domain;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 1: return TakeName(field, name);
        case 7: return VisitNode(field.bytes, 1, body);
        case 9: return Skim(field.bytes);
        case 10: return TakeName(field, domain);
        case 11: return VisitAttribute(field.bytes, 1, body);
        case 12: return VisitValue(field.bytes, false);
        default: return {};
      }
    }));
    FunctionBody& known = functions_[CallName(domain, name)];
    known.nodes += body.nodes;
    for (const auto& [called, times] : body.calls) known.calls[called] += times;
    return {};
  }

  Status VisitGraph(WireRange message, int depth, FunctionBody& body) {
    if (depth > kMaxGraphDepth) return Invalid("its graphs are nested more than {} deep", kMaxGraphDepth);
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 1: return VisitNode(field.bytes, depth, body);
        case 2: return depth == 0 ? TakeText(field, info_.graph_name) : Status{};
        case 5: return VisitTensor(field.bytes, depth == 0 ? TensorPlace::kMainGraph : TensorPlace::kSubgraph);
        case 11:
        case 12: return VisitValue(field.bytes, depth == 0, field.number == 11);
        case 13: return VisitValue(field.bytes, false);
        case 14: return Skim(field.bytes);
        case 15: return Sparse("a sparse initializer", field);
        default: return {};
      }
    });
  }

  Status VisitSubgraph(WireRange message, int depth, FunctionBody& body) {
    info_.has_subgraphs = true;
    return VisitGraph(message, depth + 1, body);
  }

  Status VisitNode(WireRange message, int depth, FunctionBody& body) {
    std::string op;
    std::string domain;
    std::array<std::string, kMostIndexPlace + 1> inputs;
    std::size_t input = 0;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 1: return input < inputs.size() ? TakeText(field, inputs[input++]) : Status{};
        case 4: return TakeName(field, op);
        case 5: return VisitAttribute(field.bytes, depth, body);
        case 7: return TakeName(field, domain);
        default: return {};
      }
    }));
    if (++nodes_ > kMaxNodes) return Invalid("it has more than {} nodes", kMaxNodes);
    ++body.nodes;
    ++body.calls[CallName(domain, op)];
    for (const UncheckedIndex& unchecked : kUncheckedIndices) {
      if (IsOnnx(CallName(domain, op), unchecked.op))
        indices_.emplace(std::move(inputs[unchecked.place]), unchecked.op);
    }
    return {};
  }

  // Of a weight or of what the graph computes they are the model's own affair.
  Status CheckIndices() const {
    for (const auto& [name, op] : indices_) {
      if (!inputs_.contains(name) || names_.contains(name)) continue;
      return Fail(
          ErrorCode::kUnsupported,
          "its operator {} takes '{}' from the request, which ONNX Runtime does not check: a wrong value could end "
          "the process",
          op, Readable(name, 100));
    }
    return {};
  }

  Status VisitAttribute(WireRange message, int depth, FunctionBody& body) {
    bool tensor = false;
    bool graph = false;
    return ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      switch (field.number) {
        case 5: TANDEM_TRY(Once(tensor, field)); return VisitTensor(field.bytes, TensorPlace::kAttribute);
        case 6: TANDEM_TRY(Once(graph, field)); return VisitSubgraph(field.bytes, depth, body);
        case 10: return VisitTensor(field.bytes, TensorPlace::kAttribute);
        case 11: return VisitSubgraph(field.bytes, depth, body);
        case 14:
        case 15: return VisitType(field.bytes, 0, false);
        case 22:
        case 23: return Sparse("an attribute that is a sparse tensor", field);
        default: return {};
      }
    });
  }

  // ONNX Runtime unpacks them at any size they claim, and trusts their indices.
  static Status Sparse(std::string_view what, const WireField& field) {
    return Fail(ErrorCode::kUnsupported, "it has {}, at byte {}; sparse tensors are not served", what,
                field.bytes.begin);
  }

  Status VisitTensor(WireRange message, TensorPlace place) {
    if (++tensors_ > kMaxTensors) return Invalid("it has more than {} tensors", kMaxTensors);
    TANDEM_ASSIGN(OnnxTensorInfo tensor, ReadOnnxTensor(file_, message));
    tensor.tensor.place = place;
    if (place != TensorPlace::kAttribute && !names_.insert(tensor.tensor.name).second) {
      info_.repeated_names.insert(tensor.tensor.name);
    }
    info_.tensor_bytes += tensor.stored_bytes;
    if (tensor.external) info_.external.push_back(std::move(tensor.tensor));
    return {};
  }

  // A ValueInfoProto. The names of the main graph's inputs and outputs are shown to clients.
  Status VisitValue(WireRange message, bool shown, bool input = false) {
    std::string name;
    has_shape_ = false;
    TANDEM_TRY(ForEach(message, [&](const WireField& field) -> Status {
      if (!IsBytes(field)) return {};
      if (field.number == 1 && shown) {
        TANDEM_TRY(TakeText(field, name));
        if (!IsUtf8(name)) return Invalid("the name '{}' of a tensor is not valid UTF-8", Readable(name, 100));
      }
      return field.number == 2 ? VisitType(field.bytes, 0, shown && input) : Status{};
    }));
    if (!shown || !input) return {};
    if (!has_shape_) info_.unranked_inputs.insert(name);
    inputs_.insert(std::move(name));
    return {};
  }

  // A TypeProto: visited for its size, and for dimensions of an input that are not fixed.
  Status VisitType(WireRange message, int depth, bool input) {
    if (depth > kMaxGraphDepth) return Invalid("its types are nested more than {} deep", kMaxGraphDepth);
    return ForEachNested(message, [&](std::uint32_t kind, WireRange type) -> Status {
      return ForEachNested(type, [&](std::uint32_t part, WireRange inner) -> Status {
        const bool is_tensor = kind == 1 || kind == 8;
        if (is_tensor && part == 2) return VisitShape(inner, input);
        return is_tensor ? Status{} : VisitType(inner, depth + 1, false);
      });
    });
  }

  Status VisitShape(WireRange message, bool input) {
    has_shape_ = true;
    return ForEachNested(message, [&](std::uint32_t, WireRange dimension) -> Status {
      bool fixed = false;
      TANDEM_TRY(ForEach(dimension, [&](const WireField& field) -> Status {
        fixed |= IsVarint(field) && field.number == 1 && static_cast<std::int64_t>(field.value) >= 0;
        return {};
      }));
      info_.variable_inputs |= input && !fixed;
      return {};
    });
  }

  template <typename Visit>
  Status ForEachNested(WireRange message, Visit visit) {
    return ForEach(message, [&](const WireField& field) -> Status {
      return IsBytes(field) ? visit(field.number, field.bytes) : Status{};
    });
  }

  // Steps through a small message for the sake of counting its parts.
  Status Skim(WireRange message) {
    return ForEach(message, [](const WireField&) { return Status{}; });
  }

  WireFile& file_;
  OnnxFileInfo info_;
  bool has_graph_ = false;
  std::uint64_t nodes_ = 0;
  std::uint64_t tensors_ = 0;
  bool has_shape_ = false;                           // Of the value that is being visited.
  std::unordered_set<std::string> names_;            // Of initializers.
  std::unordered_set<std::string> inputs_;           // Of the main graph.
  std::map<std::string, std::string_view> indices_;  // What operators take their indices from, and one of those.
  FunctionBody main_;
  FunctionBodies functions_;
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
    const bool unsupported = info.error().code == ErrorCode::kUnsupported;
    info.error().message = Format("'{}' {}: {}", path.string(),
                                  unsupported ? "cannot be served" : "is not a valid ONNX model", info.error().message);
  }
  return info;
}

}  // namespace tandem
