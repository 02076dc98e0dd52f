#include "runtimes/onnx/packed_weights.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

constexpr int kMaxGraphDepth = 32;
constexpr std::size_t kMaxText = 1 << 20;

// Which inputs of an operator ONNX Runtime's kernels for the CPU pack.
struct Packing {
  std::string_view op;
  std::size_t first;
  std::size_t last;
};
constexpr Packing kPackings[] = {
    {"Attention", 1, 1},
    {"DynamicQuantizeLSTM", 1, 2},
    {"DynamicQuantizeMatMul", 1, 1},
    {"FusedGemm", 1, 1},
    {"FusedMatMul", 1, 1},
    {"GRU", 1, 2},
    {"Gemm", 1, 1},
    {"LSTM", 1, 2},
    {"MatMul", 1, 1},
    {"MatMulInteger", 1, 1},
    {"QAttention", 1, 1},
    {"QGemm", 3, 3},
    {"QLinearMatMul", 3, 3},
};

bool Packs(std::string_view op, std::size_t input) {
  return std::ranges::any_of(
      kPackings, [&](const Packing& known) { return known.op == op && input >= known.first && input <= known.last; });
}

// Visits the nodes of all graphs. The numbers are the field numbers of onnx.proto.
class Uses {
 public:
  explicit Uses(WireFile& file) : file_(file) {}

  Status Visit(WireRange model) {
    return file_.ForEach(model, [&](const WireField& field) -> Status {
      return field.IsBytes(7) ? VisitGraph(field.bytes, 0) : Status{};
    });
  }
  std::unordered_set<std::string> Packed() && {
    std::erase_if(packed_, [&](const std::string& name) { return read_.contains(name); });
    return std::move(packed_);
  }

 private:
  Status VisitGraph(WireRange graph, int depth) {
    if (depth > kMaxGraphDepth) return Invalid("its graphs are nested more than {} deep", kMaxGraphDepth);
    return file_.ForEach(graph, [&](const WireField& field) -> Status {
      if (field.IsBytes(1)) return VisitNode(field.bytes, depth);
      return field.IsBytes(12) ? VisitOutput(field.bytes) : Status{};
    });
  }

  Status VisitOutput(WireRange value) {
    return file_.ForEach(value, [&](const WireField& field) -> Status {
      if (!field.IsBytes(1)) return {};
      TANDEM_ASSIGN(std::string name, file_.Text(field.bytes, kMaxText));
      read_.insert(std::move(name));
      return {};
    });
  }

  Status VisitNode(WireRange node, int depth) {
    std::vector<std::string> inputs;
    std::string op;
    TANDEM_TRY(file_.ForEach(node, [&](const WireField& field) -> Status {
      if (field.IsBytes(1)) {
        TANDEM_ASSIGN(std::string name, file_.Text(field.bytes, kMaxText));
        inputs.push_back(std::move(name));
      } else if (field.IsBytes(4)) {
        TANDEM_ASSIGN(op, file_.Text(field.bytes, kMaxText));
      } else if (field.IsBytes(5)) {
        return VisitAttribute(field.bytes, depth);
      }
      return {};
    }));
    for (std::size_t i = 0; i < inputs.size(); ++i) (Packs(op, i) ? packed_ : read_).insert(std::move(inputs[i]));
    return {};
  }

  Status VisitAttribute(WireRange attribute, int depth) {
    return file_.ForEach(attribute, [&](const WireField& field) -> Status {
      return field.IsBytes(6) || field.IsBytes(11) ? VisitGraph(field.bytes, depth + 1) : Status{};
    });
  }

  WireFile& file_;
  std::unordered_set<std::string> packed_;
  std::unordered_set<std::string> read_;
};

}  // namespace

Result<std::unordered_set<std::string>> FindPackedWeights(const std::filesystem::path& model) {
  TANDEM_ASSIGN(WireFile file, WireFile::Open(model));
  Uses uses(file);
  TANDEM_TRY(uses.Visit(file.whole()));
  return std::move(uses).Packed();
}

}  // namespace tandem
