#include "server/repository/config_file.h"

#include <fstream>

#include "server/repository/model_name.h"

namespace tandem::repository {

Result<ParsedModelConfig> ReadConfigFile(const std::filesystem::path& path) {
  TANDEM_ASSIGN(const std::string text, ReadSmallFile(path, kMaxModelConfigBytes));
  auto parsed = path.extension() == ".json" ? ParseModelConfigJson(text) : ParseModelConfigPbtxt(text);
  if (!parsed) return Fail(parsed.error().code, "{}: {}", path.filename().string(), parsed.error().message);
  return parsed;
}

Result<std::string> ReadSmallFile(const std::filesystem::path& path, std::size_t limit) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (file) {
    file.read(block, sizeof(block));
    text.append(block, static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit) {
      return Fail(ErrorCode::kTooLarge, "file '{}' has more than {} bytes", PathText(path), limit);
    }
  }
  if (!file.eof()) return Invalid("file '{}' cannot be read", PathText(path));
  return text;
}

}  // namespace tandem::repository
