#include <charconv>
#include <cmath>
#include <map>
#include <string>

#include "api/wire/json_text.h"
#include "api/wire/model_config_text.h"

// protobuf's own JSON printer writes 64-bit integers as strings, where clients of this call want numbers.

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendMessage(const Message& message, std::string& out);

template <typename T>
void AppendNumber(T value, std::string& out) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

template <typename T>
void AppendFloat(T value, std::string& out) {
  if (std::isfinite(value)) {
    AppendNumber(value, out);
  } else {
    // As protobuf's JSON mapping has it.
    out += std::isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  }
}

// One value of a field; `index` is -1 for a field that is not repeated.
void AppendValue(const Message& message, const FieldDescriptor& field, int index, std::string& out) {
  const Reflection& reflection = *message.GetReflection();
  const auto get = [&](auto single, auto repeated) {
    return index < 0 ? (reflection.*single)(message, &field) : (reflection.*repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return AppendNumber(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32), out);
    case FieldDescriptor::CPPTYPE_INT64:
      return AppendNumber(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64), out);
    case FieldDescriptor::CPPTYPE_UINT32:
      return AppendNumber(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), out);
    case FieldDescriptor::CPPTYPE_UINT64:
      return AppendNumber(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64), out);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return AppendFloat(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), out);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendFloat(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), out);
    case FieldDescriptor::CPPTYPE_BOOL:
      out += get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
      return;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
      const auto* value = field.enum_type()->FindValueByNumber(number);
      if (value == nullptr) return AppendNumber(number, out);
      return AppendJsonString(value->name(), out);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return AppendJsonString(get(&Reflection::GetString, &Reflection::GetRepeatedString), out);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendMessage(
          index < 0 ? reflection.GetMessage(message, &field) : reflection.GetRepeatedMessage(message, &field, index),
          out);
  }
}

// Sorted by key, so that the same configuration is always the same text.
void AppendMap(const Message& message, const FieldDescriptor& field, std::string& out) {
  const Reflection& reflection = *message.GetReflection();
  std::map<std::string, std::string> entries;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    std::string key;
    AppendValue(entry, *field.message_type()->map_key(), -1, key);
    if (!key.starts_with('"')) key = JsonString(key);
    AppendValue(entry, *field.message_type()->map_value(), -1, entries[key]);
  }
  out += '{';
  bool first = true;
  for (const auto& [key, value] : entries) {
    if (!first) out += ',';
    first = false;
    out += key;
    out += ':';
    out += value;
  }
  out += '}';
}

void AppendList(const Message& message, const FieldDescriptor& field, std::string& out) {
  out += '[';
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    AppendValue(message, field, i, out);
  }
  out += ']';
}

void AppendMessage(const Message& message, std::string& out) {
  out += '{';
  bool first = true;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    // Messages and members of a oneof are shown only when set: their presence means something.
    if (field.has_presence() && !message.GetReflection()->HasField(message, &field)) continue;
    if (!first) out += ',';
    first = false;
    AppendJsonString(field.name(), out);
    out += ':';
    if (field.is_map()) {
      AppendMap(message, field, out);
    } else if (field.is_repeated()) {
      AppendList(message, field, out);
    } else {
      AppendValue(message, field, -1, out);
    }
  }
  out += '}';
}

}  // namespace

std::string ModelConfigJson(const inference::ModelConfig& config) {
  std::string out;
  AppendMessage(config, out);
  return out;
}

}  // namespace tandem
