#include "api/wire/infer_answer.h"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "api/base/infer_request.h"
#include "api/wire/grpc_contents.h"
#include "api/wire/json_tensor.h"
#include "api/wire/json_text.h"
#include "api/wire/json_value.h"
#include "api/wire/proto/inference.pb.h"

namespace tandem {
namespace {

namespace ondemand = simdjson::ondemand;

// One past the brace that closes the first one; 0 when none does.
std::size_t JsonEnd(std::string_view body) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    } else if (depth == 0 && c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      return 0;
    }
  }
  return 0;
}

// One output while its members, which come in any order, are being read.
struct PendingOutput {
  Tensor tensor;
  bool has_type = false;
  bool has_shape = false;
  std::optional<std::uint64_t> binary_size;
  std::string_view data;  // As text.
};

// Reads one answer. Used once, on one thread.
class RestAnswerReader {
 public:
  // `json` is borrowed.
  RestAnswerReader(const simdjson::padded_string& json, std::string_view binary) : json_(json), binary_(binary) {}

  Result<std::vector<Tensor>> Read();

 private:
  Status ReadOutput(ondemand::value value, const JsonPath& path);
  Status ReadMember(std::string_view key, ondemand::value value, const JsonPath& path, PendingOutput& pending);
  Status ReadShape(ondemand::value value, const JsonPath& path, PendingOutput& pending);
  Status ReadBinarySize(ondemand::value value, const JsonPath& path, PendingOutput& pending);
  Status ReadData(const JsonPath& path, PendingOutput& pending);

  const simdjson::padded_string& json_;
  std::string_view binary_;  // What is left of it.
  bool has_outputs_ = false;
  std::vector<Tensor> outputs_;
};

Result<std::vector<Tensor>> RestAnswerReader::Read() {
  const JsonPath top;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (const auto error = parser.iterate(json_).get(document)) return MalformedJson(error, top);
  if (const auto error = document.get_object().get(object)) return MalformedJson(error, top);
  TANDEM_TRY(ForEachMember(object, top, [&](std::string_view key, ondemand::value value) -> Status {
    const JsonPath path = top.Member(key);
    if (key != "outputs") return SkipJson(value, path, 1);
    has_outputs_ = true;
    TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
    return ForEachElement(array, path, kMaxTensors,
                          [&](std::size_t i, ondemand::value element) { return ReadOutput(element, path.Element(i)); });
  }));
  if (!has_outputs_) return Invalid("the answer has no 'outputs'");
  if (!binary_.empty()) return Invalid("the answer has {} surplus bytes after its last output", binary_.size());
  return std::move(outputs_);
}

Status RestAnswerReader::ReadOutput(ondemand::value value, const JsonPath& path) {
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  PendingOutput pending;
  TANDEM_TRY(ForEachMember(object, path, [&](std::string_view key, ondemand::value member) {
    return ReadMember(key, member, path.Member(key), pending);
  }));
  Tensor& tensor = pending.tensor;
  if (tensor.name.empty() || !pending.has_type || !pending.has_shape) {
    return Invalid("{} lacks its name, datatype or shape", path.Text());
  }
  if (pending.binary_size) {
    if (*pending.binary_size > binary_.size()) {
      return Invalid("output '{}': binary_data_size is {} but {} bytes are left in the answer", Excerpt(tensor.name),
                     *pending.binary_size, binary_.size());
    }
    tensor.data.view = std::as_bytes(std::span(binary_.substr(0, *pending.binary_size)));
    binary_.remove_prefix(*pending.binary_size);
    TANDEM_TRY(CheckTensorData(tensor));
  } else {
    TANDEM_TRY(ReadData(path.Member("data"), pending));
  }
  outputs_.push_back(std::move(tensor));
  return {};
}

Status RestAnswerReader::ReadMember(std::string_view key, ondemand::value value, const JsonPath& path,
                                    PendingOutput& pending) {
  if (key == "name") {
    TANDEM_ASSIGN(pending.tensor.name, ReadJsonString(value, path));
    return {};
  }
  if (key == "datatype") {
    TANDEM_ASSIGN(const std::string_view name, ReadJsonString(value, path));
    const auto type = ParseDataType(name);
    if (!type) return Invalid("{} is '{}', which is not a datatype", path.Text(), Excerpt(name));
    pending.tensor.type = *type;
    pending.has_type = true;
    return {};
  }
  if (key == "shape") return ReadShape(value, path, pending);
  if (key == "parameters") return ReadBinarySize(value, path, pending);
  if (key != "data") return SkipJson(value, path, 3);
  if (!JsonToken(value).starts_with('[')) return WrongJsonType(value, path, "an array");
  if (const auto error = value.raw_json().get(pending.data)) return MalformedJson(error, path);
  return {};
}

Status RestAnswerReader::ReadShape(ondemand::value value, const JsonPath& path, PendingOutput& pending) {
  TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
  pending.has_shape = true;
  return ForEachElement(array, path, kMaxRank, [&](std::size_t i, ondemand::value element) -> Status {
    std::int64_t dim = 0;
    if (element.get_int64().get(dim) || dim < 0) {
      return WrongJsonType(element, path.Element(i), "an integer from 0 to 2^63-1");
    }
    pending.tensor.shape.push_back(dim);
    return {};
  });
}

Status RestAnswerReader::ReadBinarySize(ondemand::value value, const JsonPath& path, PendingOutput& pending) {
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  return ForEachMember(object, path, [&](std::string_view key, ondemand::value member) -> Status {
    if (key != "binary_data_size") return SkipJson(member, path.Member(key), 4);
    std::uint64_t size = 0;
    if (member.get_uint64().get(size)) return WrongJsonType(member, path.Member(key), "a number of bytes");
    pending.binary_size = size;
    return {};
  });
}

Status RestAnswerReader::ReadData(const JsonPath& path, PendingOutput& pending) {
  if (pending.data.empty()) return Invalid("output '{}' has no data", Excerpt(pending.tensor.name));
  // It lies within a padded text, which is padding enough for it, too.
  const simdjson::padded_string_view text(pending.data.data(), pending.data.size(),
                                          pending.data.size() + simdjson::SIMDJSON_PADDING);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array array;
  if (const auto error = parser.iterate(text).get(document)) return MalformedJson(error, path);
  if (const auto error = document.get_array().get(array)) return MalformedJson(error, path);
  TANDEM_ASSIGN(pending.tensor.data, ReadJsonTensor(array, pending.tensor, json_.size(), nullptr));
  return {};
}

Bytes Copied(std::string_view bytes) {
  AlignedBuffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return Bytes::Own(std::move(buffer));
}

}  // namespace

Result<std::vector<Tensor>> DecodeRestAnswer(std::string_view body) {
  const std::size_t json_size = JsonEnd(body);
  if (json_size == 0) return Invalid("the answer is not JSON");
  const simdjson::padded_string json(body.substr(0, json_size));
  std::string_view rest = body.substr(json_size);
  // A text that ends with a line break has no binary part.
  if (rest.find_first_not_of(" \t\r\n") == std::string_view::npos && rest.size() <= 2) rest = {};
  return RestAnswerReader(json, rest).Read();
}

Result<std::vector<Tensor>> DecodeGrpcAnswer(std::string_view body) {
  inference::ModelInferResponse message;
  if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Invalid("the answer is not a ModelInferResponse");
  }
  const int raw = message.raw_output_contents_size();
  if (raw != 0 && raw != message.outputs_size()) {
    return Invalid("the answer has {} outputs and {} raw contents", message.outputs_size(), raw);
  }
  std::vector<Tensor> outputs;
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    const auto type = ParseDataType(output.datatype());
    if (!type) return Invalid("output '{}' has datatype '{}'", Excerpt(output.name()), Excerpt(output.datatype()));
    Tensor tensor{.name = output.name(), .type = *type, .shape = {}, .data = {}};
    tensor.shape.assign(output.shape().begin(), output.shape().end());
    if (raw > 0) {
      tensor.data = Copied(message.raw_output_contents(i));
    } else {
      TANDEM_ASSIGN(tensor.data, ReadTypedContents(output.contents(), tensor));
    }
    TANDEM_TRY(CheckTensorData(tensor));
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

}  // namespace tandem
