#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/data_type.h"
#include "api/base/result.h"
#include "api/wire/proto/model_config.pb.h"

namespace tandem {

inline constexpr std::size_t kMaxModelConfigBytes = 1024 * 1024;

struct ParsedModelConfig {
  inference::ModelConfig config;
  // One per field that we do not know, with its place. They do not stop a model from loading.
  std::vector<std::string> warnings;
};

// Parse config.pbtxt and config.json. Errors are kInvalidArgument and name line and column, or the path of the member.
// Size and nesting are bounded. Thread-safe.
[[nodiscard]] Result<ParsedModelConfig> ParseModelConfigPbtxt(std::string_view text);
[[nodiscard]] Result<ParsedModelConfig> ParseModelConfigJson(std::string_view text);

// The configuration as GET …/config shows it: field names as in the .proto, fields at their default included, and
// 64-bit integers as numbers.
[[nodiscard]] std::string ModelConfigJson(const inference::ModelConfig& config);

[[nodiscard]] inference::DataType ToConfigDataType(DataType type);
// Nothing for TYPE_INVALID.
[[nodiscard]] std::optional<DataType> FromConfigDataType(inference::DataType type);

}  // namespace tandem
