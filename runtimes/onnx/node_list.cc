#include "runtimes/onnx/node_list.h"

#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

// Fields of ONNX's messages.
constexpr std::uint32_t kModelGraph = 7;
constexpr std::uint32_t kGraphNode = 1;
constexpr std::uint32_t kNodeOutput = 2;
constexpr std::uint32_t kNodeName = 3;
constexpr std::uint32_t kNodeOp = 4;
constexpr std::uint32_t kNodeDomain = 7;
constexpr std::size_t kMostText = 4096;

Result<OnnxNode> ReadNode(WireFile& file, WireRange range) {
  OnnxNode node;
  std::string output;
  TANDEM_TRY(file.ForEach(range, [&](const WireField& field) -> Status {
    for (const auto& [number, text] :
         {std::pair{kNodeName, &node.name}, {kNodeOp, &node.op}, {kNodeDomain, &node.domain}}) {
      if (!field.IsBytes(number)) continue;
      TANDEM_ASSIGN(*text, file.Text(field.bytes, kMostText));
    }
    if (field.IsBytes(kNodeOutput) && output.empty()) {
      TANDEM_ASSIGN(output, file.Text(field.bytes, kMostText));
    }
    return {};
  }));
  if (node.name.empty()) node.name = output;
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

}  // namespace

Result<std::vector<OnnxNode>> ListOnnxNodes(const std::filesystem::path& model) {
  TANDEM_ASSIGN(WireFile file, WireFile::Open(model));
  std::vector<OnnxNode> nodes;
  const Status read = file.ForEach(file.whole(), [&](const WireField& graph) -> Status {
    if (!graph.IsBytes(kModelGraph)) return {};
    return file.ForEach(graph.bytes, [&](const WireField& field) -> Status {
      if (!field.IsBytes(kGraphNode)) return {};
      TANDEM_ASSIGN(OnnxNode node, ReadNode(file, field.bytes));
      nodes.push_back(std::move(node));
      return {};
    });
  });
  if (!read) return Fail(read.error().code, "'{}': {}", model.string(), read.error().message);
  return nodes;
}

}  // namespace tandem
