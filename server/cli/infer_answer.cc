#include "server/cli/infer_answer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include <json/writer.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/cli/tensor_text.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kShownValues = 8;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

std::string Compact(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "";
  builder["emitUTF8"] = true;
  builder["useSpecialFloats"] = true;
  return Json::writeString(builder, value);
}

std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

Result<Tensor> ReadOutput(const Json::Value& output, std::string_view& bytes) {
  if (!output.isObject() || !output["name"].isString() || !output["shape"].isArray()) {
    return Fail(ErrorCode::kInternal, "the server's answer describes an output wrongly");
  }
  Tensor tensor{.name = output["name"].asString(), .type = {}, .shape = {}, .data = {}};
  const auto type = ParseDataType(output["datatype"].asString());
  const Json::Value& size = output["parameters"]["binary_data_size"];
  if (!type || !size.isUInt64() || size.asUInt64() > bytes.size()) {
    return Fail(ErrorCode::kInternal, "the server's answer holds no binary data of output '{}'", Excerpt(tensor.name));
  }
  tensor.type = *type;
  for (const Json::Value& dim : output["shape"]) tensor.shape.push_back(dim.asInt64());
  AlignedBuffer buffer(size.asUInt64());
  std::memcpy(buffer.data(), bytes.data(), buffer.size());
  bytes.remove_prefix(buffer.size());
  tensor.data = Bytes::Own(std::move(buffer));
  if (const Status fits = CheckTensorData(tensor); !fits) {
    return Fail(ErrorCode::kInternal, "the server's answer: {}", fits.error().message);
  }
  return tensor;
}

std::string OutputAsJson(Json::Value described, const Tensor& output) {
  Json::Value parameters = described["parameters"];
  parameters.removeMember("binary_data_size");
  std::string text = Format(R"({{"name": {}, "datatype": "{}", "shape": {}, )", JsonString(output.name),
                            DataTypeName(output.type), ShapeText(output.shape));
  if (!parameters.empty()) text += Format(R"("parameters": {}, )", Compact(parameters));
  return text + Format(R"("data": [{}]}})", Joined(ElementsAsJson(output, kAll), ", "));
}

}  // namespace

Result<std::vector<Tensor>> OutputsOf(const MixedAnswer& answer) {
  if (!answer.json.isObject() || !answer.json["outputs"].isArray()) {
    return Fail(ErrorCode::kInternal, "the server's answer holds no outputs");
  }
  std::vector<Tensor> outputs;
  std::string_view bytes = answer.bytes;
  for (const Json::Value& output : answer.json["outputs"]) {
    TANDEM_ASSIGN(outputs.emplace_back(), ReadOutput(output, bytes));
  }
  return outputs;
}

std::string AnswerAsJson(const Json::Value& answer, const std::vector<Tensor>& outputs) {
  std::string text = "{\n";
  for (const std::string& name : answer.getMemberNames()) {
    if (name != "outputs") text += Format("  {}: {},\n", JsonString(name), Compact(answer[name]));
  }
  std::vector<std::string> parts;
  parts.reserve(outputs.size());
  for (Json::ArrayIndex i = 0; i < outputs.size(); ++i) {
    parts.push_back("    " + OutputAsJson(answer["outputs"][i], outputs[i]));
  }
  return text + "  \"outputs\": [\n" + Joined(parts, ",\n") + "\n  ]\n}";
}

std::string OutputAsText(const Tensor& output) {
  const std::string head = Format("{} {} {}\n  ", output.name, DataTypeName(output.type), ShapeText(output.shape));
  if (output.type == DataType::kBytes) return head + Joined(ElementsAsText(output, kAll), "\n  ");
  const std::size_t count = output.data.size() / DataTypeSize(output.type);
  const std::string more = count > kShownValues ? Format(" … ({} values)", count) : "";
  return head + Joined(ElementsAsText(output, kShownValues), " ") + more;
}

}  // namespace tandem::cli
