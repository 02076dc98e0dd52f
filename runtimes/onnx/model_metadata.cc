#include "runtimes/onnx/model_metadata.h"

#include <algorithm>
#include <utility>

#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

// Fields of ONNX's messages.
constexpr std::uint32_t kModelMetadata = 14;
constexpr std::uint32_t kEntryKey = 1;
constexpr std::uint32_t kEntryValue = 2;
constexpr std::size_t kMostEntries = 100;
constexpr std::size_t kMostText = 1024;

bool IsPlain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; });
}

}  // namespace

Result<std::map<std::string, std::string>> ReadOnnxMetadata(const std::filesystem::path& model) {
  TANDEM_ASSIGN(WireFile file, WireFile::Open(model));
  std::map<std::string, std::string> metadata;
  const Status read = file.ForEach(file.whole(), [&](const WireField& entry) -> Status {
    if (!entry.IsBytes(kModelMetadata) || metadata.size() >= kMostEntries) return {};
    std::string key;
    std::string value;
    bool fits = true;
    TANDEM_TRY(file.ForEach(entry.bytes, [&](const WireField& field) -> Status {
      for (const auto& [number, text] : {std::pair{kEntryKey, &key}, {kEntryValue, &value}}) {
        if (!field.IsBytes(number)) continue;
        fits &= field.bytes.size() <= kMostText;
        if (!fits) continue;
        TANDEM_ASSIGN(*text, file.Text(field.bytes, kMostText));
      }
      return {};
    }));
    if (fits && !key.empty() && IsPlain(key) && IsPlain(value)) metadata[key] = std::move(value);
    return {};
  });
  if (!read) return Fail(read.error().code, "'{}': {}", model.string(), read.error().message);
  return metadata;
}

}  // namespace tandem
