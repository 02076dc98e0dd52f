#include "api/wire/model_config_text.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <json/json.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kMaxDepth = 64;
// A file of nothing but unknown fields should not drown the log.
constexpr std::size_t kMaxWarnings = 100;

// Indexed by tandem::DataType.
constexpr std::array<inference::DataType, kDataTypeCount> kConfigTypes = {
    inference::TYPE_BOOL, inference::TYPE_UINT8, inference::TYPE_UINT16, inference::TYPE_UINT32, inference::TYPE_UINT64,
    inference::TYPE_INT8, inference::TYPE_INT16, inference::TYPE_INT32,  inference::TYPE_INT64,  inference::TYPE_FP16,
    inference::TYPE_FP32, inference::TYPE_FP64,  inference::TYPE_BF16,   inference::TYPE_STRING,
};

Status CheckSize(std::string_view text) {
  if (text.size() <= kMaxModelConfigBytes) return {};
  return Invalid("the model configuration has {} bytes; at most {} are allowed", text.size(), kMaxModelConfigBytes);
}

void Warn(std::string warning, std::vector<std::string>& warnings) {
  if (warnings.size() < kMaxWarnings) warnings.push_back(std::move(warning));
}

// Keeps the first error and all warnings of one parse.
class Collector final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(std::vector<std::string>& warnings) : warnings_(warnings) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (error_.empty()) error_ = Place(line, column, message);
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    Warn(Place(line, column, message), warnings_);
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  // protobuf counts from 0, people from 1.
  static std::string Place(int line, int column, const std::string& message) {
    return Format("line {}, column {}: {}", line + 1, column + 1, Excerpt(message));
  }

  std::vector<std::string>& warnings_;  // Borrowed from the parse.
  std::string error_;
};

// The parser recurses into messages, also into those it skips; so depth is checked before it runs.
Status CheckTextDepth(std::string_view text) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      // A string ends at its line's end at the latest.
      if (c == quote || c == '\n') quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '{' || c == '[' || c == '<') {
      if (++depth > kMaxDepth) return Invalid("the model configuration is nested more than {} levels deep", kMaxDepth);
    } else if (c == '}' || c == ']' || c == '>') {
      --depth;
    }
  }
  return {};
}

const FieldDescriptor* FindField(const Descriptor& type, const std::string& name) {
  if (const FieldDescriptor* field = type.FindFieldByName(name)) return field;
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->json_name() == name) return type.field(i);
  }
  return nullptr;
}

void RemoveUnknownMembers(Json::Value& object, const Descriptor& type, const std::string& path,
                          std::vector<std::string>& warnings);

void RemoveUnknownBelow(Json::Value& value, const FieldDescriptor& field, const std::string& place,
                        std::vector<std::string>& warnings) {
  const Descriptor* type = field.message_type();
  if (field.is_map()) type = type->map_value()->message_type();
  if (type == nullptr) return;
  if (field.is_map() && value.isObject()) {
    for (auto entry = value.begin(); entry != value.end(); ++entry) {
      RemoveUnknownMembers(*entry, *type, Format("{}[\"{}\"]", place, Excerpt(entry.name())), warnings);
    }
  } else if (value.isArray()) {
    for (Json::ArrayIndex i = 0; i < value.size(); ++i) {
      RemoveUnknownMembers(value[i], *type, Format("{}[{}]", place, i), warnings);
    }
  } else if (!field.is_map()) {
    RemoveUnknownMembers(value, *type, place, warnings);
  }
}

// Takes out, with a warning, the members of a JSON object that its message type lacks. protobuf could ignore them
// itself, but then it would also ignore misspelt values of fields that we know. Depth is bounded by the JSON reader.
void RemoveUnknownMembers(Json::Value& object, const Descriptor& type, const std::string& path,
                          std::vector<std::string>& warnings) {
  if (!object.isObject()) return;
  for (const std::string& name : object.getMemberNames()) {
    const std::string place = path.empty() ? Excerpt(name) : path + '.' + Excerpt(name);
    if (const FieldDescriptor* field = FindField(type, name)) {
      RemoveUnknownBelow(object[name], *field, place, warnings);
    } else {
      Warn(Format("unknown field '{}'", place), warnings);
      object.removeMember(name);
    }
  }
}

Result<Json::Value> ReadJson(std::string_view text) {
  Json::CharReaderBuilder builder;
  Json::CharReaderBuilder::strictMode(&builder.settings_);
  builder["stackLimit"] = kMaxDepth;
  const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
  Json::Value root;
  std::string errors;
  try {
    if (!reader->parse(text.data(), text.data() + text.size(), &root, &errors)) {
      return Invalid("the model configuration is not valid JSON: {}", Excerpt(errors));
    }
  } catch (const Json::Exception&) {
    return Invalid("the model configuration is nested more than {} levels deep", kMaxDepth);
  }
  if (!root.isObject()) return Invalid("the model configuration must be a JSON object");
  return root;
}

}  // namespace

Result<ParsedModelConfig> ParseModelConfigPbtxt(std::string_view text) {
  TANDEM_TRY(CheckSize(text));
  TANDEM_TRY(CheckTextDepth(text));
  ParsedModelConfig parsed;
  Collector collector(parsed.warnings);
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.RecordErrorsTo(&collector);
  if (!parser.ParseFromString(std::string(text), &parsed.config)) {
    return Invalid("the model configuration is malformed: {}",
                   collector.error().empty() ? "unknown reason" : collector.error());
  }
  return parsed;
}

Result<ParsedModelConfig> ParseModelConfigJson(std::string_view text) {
  TANDEM_TRY(CheckSize(text));
  if (!IsValidUtf8(text)) return Invalid("the model configuration is not valid UTF-8");
  TANDEM_ASSIGN(Json::Value root, ReadJson(text));
  ParsedModelConfig parsed;
  RemoveUnknownMembers(root, *inference::ModelConfig::descriptor(), "", parsed.warnings);
  const std::string known = parsed.warnings.empty() ? std::string(text) : Json::FastWriter().write(root);
  const auto status = google::protobuf::util::JsonStringToMessage(known, &parsed.config);
  if (!status.ok()) {
    return Invalid("the model configuration is malformed: {}", Excerpt(std::string_view(status.message())));
  }
  return parsed;
}

inference::DataType ToConfigDataType(DataType type) {
  return kConfigTypes[std::to_underlying(type)];
}

std::optional<DataType> FromConfigDataType(inference::DataType type) {
  const auto* const found = std::ranges::find(kConfigTypes, type);
  if (found == kConfigTypes.end()) return std::nullopt;
  return static_cast<DataType>(found - kConfigTypes.begin());
}

}  // namespace tandem
