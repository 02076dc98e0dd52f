#include "runtimes/onnx/slim_graph.h"

#include <cstdint>
#include <span>
#include <utility>

#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

// More is constants in attributes, which are not shared.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxName = 1 << 20;

// Field numbers of onnx.proto.
constexpr std::uint32_t kGraph = 7;
constexpr std::uint32_t kInitializer = 5;
constexpr std::uint32_t kInput = 11;
constexpr std::uint32_t kNameOfTensor = 8;
constexpr std::uint32_t kNameOfValue = 1;

class Slimmer {
 public:
  Slimmer(WireFile& file, const GraphInputs& inputs) : file_(file), inputs_(inputs) {}

  Result<std::string> Slim() {
    std::string out;
    for (WireRange model = file_.whole(); !model.empty();) {
      const std::uint64_t begin = model.begin;
      TANDEM_ASSIGN(const WireField field, file_.Next(model));
      if (!field.IsBytes(kGraph)) {
        TANDEM_TRY(Copy({begin, model.begin}, out));
        continue;
      }
      TANDEM_TRY(NoteInitializers(field.bytes));
      TANDEM_ASSIGN(const std::string graph, SlimGraph(field.bytes));
      AppendVarint(kGraph << 3 | 2, out);
      AppendVarint(graph.size(), out);
      out += graph;
    }
    return out;
  }

 private:
  Status NoteInitializers(WireRange graph) {
    return file_.ForEach(graph, [&](const WireField& field) -> Status {
      if (!field.IsBytes(kInitializer)) return {};
      TANDEM_ASSIGN(std::string name, NameIn(field.bytes, kNameOfTensor));
      initializers_.insert(std::move(name));
      return {};
    });
  }

  Result<std::string> SlimGraph(WireRange graph) {
    std::string out;
    while (!graph.empty()) {
      const std::uint64_t begin = graph.begin;
      TANDEM_ASSIGN(const WireField field, file_.Next(graph));
      if (field.IsBytes(kInput)) {
        TANDEM_ASSIGN(const std::string name, NameIn(field.bytes, kNameOfValue));
        if (!inputs_.contains(name) && !initializers_.contains(name)) continue;
      }
      TANDEM_TRY(Copy({begin, graph.begin}, out));
    }
    return out;
  }

  Result<std::string> NameIn(WireRange message, std::uint32_t number) {
    std::string name;
    TANDEM_TRY(file_.ForEach(message, [&](const WireField& field) -> Status {
      if (!field.IsBytes(number)) return {};
      TANDEM_ASSIGN(name, file_.Text(field.bytes, kMaxName));
      return {};
    }));
    return name;
  }

  Status Copy(WireRange range, std::string& out) const {
    const std::size_t before = out.size();
    out.resize(before + range.size());
    return file_.ReadAt(range.begin, std::as_writable_bytes(std::span(out).subspan(before)));
  }

  static void AppendVarint(std::uint64_t value, std::string& out) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  }

  WireFile& file_;
  const GraphInputs& inputs_;
  std::set<std::string, std::less<>> initializers_;
};

}  // namespace

Result<std::string> ReadSlimGraph(const std::filesystem::path& model, const GraphInputs& inputs) {
  TANDEM_ASSIGN(WireFile file, WireFile::Open(model));
  if (file.size() > kMostBytes) {
    return Fail(ErrorCode::kUnsupported, "it has {} bytes beside its weights, more than {}", file.size(), kMostBytes);
  }
  return Slimmer(file, inputs).Slim();
}

}  // namespace tandem
