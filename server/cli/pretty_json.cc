#include "server/cli/pretty_json.h"

#include <json/writer.h>

namespace tandem::cli {

std::string PrettyJson(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "  ";
  builder["emitUTF8"] = true;
  return Json::writeString(builder, value);
}

}  // namespace tandem::cli
