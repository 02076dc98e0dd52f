#include "server/cli/pretty_json.h"

#include <algorithm>
#include <cstddef>

#include "api/wire/json_document.h"
#include "api/wire/json_text.h"

namespace tandem::cli {
namespace {

bool IsContainer(const Json::Value& value) {
  return value.isObject() || value.isArray();
}

void Append(const Json::Value& value, std::size_t indent, std::string& out) {
  // A shape or a series is easier to read on one line.
  if (std::ranges::none_of(value, IsContainer) && !value.isObject()) {
    out += JsonLine(value);
    return;
  }
  const bool object = value.isObject();
  out += object ? "{" : "[";
  const char* separator = "\n";
  for (auto it = value.begin(); it != value.end(); ++it) {
    out.append(separator).append(indent + 2, ' ');
    if (object) out += JsonString(it.name()) + ": ";
    Append(*it, indent + 2, out);
    separator = ",\n";
  }
  if (!value.empty()) out.append("\n").append(indent, ' ');
  out += object ? "}" : "]";
}

}  // namespace

std::string PrettyJson(const Json::Value& value) {
  std::string text;
  Append(value, 0, text);
  return text;
}

}  // namespace tandem::cli
