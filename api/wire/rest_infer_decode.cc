#include "api/wire/rest_infer_decode.h"

#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "api/wire/infer_parameters.h"
#include "api/wire/json_tensor.h"
#include "api/wire/json_text.h"
#include "api/wire/json_value.h"

namespace tandem {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(kJsonSlack >= simdjson::SIMDJSON_PADDING);

// A parser keeps about six times its largest document for the next one; above this size it is not kept. An image as
// text is below: to get that memory from the system page by page would take a third of the time that reading it takes.
constexpr std::size_t kKeptParserBytes = std::size_t{2} << 20;

// An input while its members, which come in any order, are being read.
struct PendingInput {
  InferInput input;
  TensorParameters parameters;
  bool has_name = false;
  bool has_type = false;
  bool has_shape = false;
  bool has_data = false;
  std::string_view deferred_data;  // `data` that came before what is needed to read it.

  [[nodiscard]] bool CanReadData() const { return has_name && has_type && has_shape; }
};

// Decodes one request. Used once, on one thread.
class RestInferDecoder {
 public:
  // `json` must have kJsonSlack readable bytes after it.
  RestInferDecoder(std::string_view json, Bytes binary, const std::shared_ptr<ByteBudget>& budget)
      : json_(json), binary_(std::move(binary)), budget_(budget) {}

  Result<InferRequest> Decode(ondemand::parser& parser);

 private:
  Status ReadTop(std::string_view key, ondemand::value value);
  Status ReadRequestParameters(ondemand::value value);
  Status ReadInputs(ondemand::value value);
  Status ReadInput(ondemand::value value, const JsonPath& path);
  Status ReadInputMember(std::string_view key, ondemand::value value, const JsonPath& path, PendingInput& pending);
  Status ReadData(ondemand::value value, const JsonPath& path, PendingInput& pending);
  Status ReadDeferredData(const JsonPath& path, PendingInput& pending);
  Status FinishInput(const JsonPath& path, PendingInput& pending);
  Status ReadOutputs(ondemand::value value);
  Status ReadOutput(ondemand::value value, const JsonPath& path);

  const std::string_view json_;
  Bytes binary_;
  const std::shared_ptr<ByteBudget>& budget_;
  std::size_t binary_used_ = 0;
  const JsonPath top_;
  bool has_inputs_ = false;
  SeenNames input_names_;
  SeenNames output_names_;
  InferRequest request_;
};

simdjson::padded_string_view Padded(std::string_view json) {
  return simdjson::padded_string_view(json.data(), json.size(), json.size() + kJsonSlack);
}

Result<std::string_view> ReadName(ondemand::value value, const JsonPath& path) {
  TANDEM_ASSIGN(const std::string_view name, ReadJsonString(value, path));
  if (name.empty()) return Invalid("{} is an empty string", path.Text());
  if (name.size() > kMaxNameBytes) {
    return Invalid("{} has {} bytes; at most {} are allowed", path.Text(), name.size(), kMaxNameBytes);
  }
  return name;
}

Result<Shape> ReadShape(ondemand::value value, const JsonPath& path) {
  TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
  Shape shape;
  TANDEM_TRY(ForEachElement(array, path, kMaxRank, [&](std::size_t i, ondemand::value element) -> Status {
    std::int64_t dim = 0;
    if (element.get_int64().get(dim) || dim < 0) {
      return WrongJsonType(element, path.Element(i), "an integer from 0 to 2^63-1");
    }
    shape.push_back(dim);
    return {};
  }));
  return shape;
}

template <typename Apply>
Status ReadParameters(ondemand::value value, const JsonPath& path, Apply apply) {
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  return ForEachMember(object, path, [&](std::string_view key, ondemand::value member) -> Status {
    TANDEM_ASSIGN(const ParameterValue parameter, ReadJsonParameter(member, path.Member(key)));
    return apply(key, parameter);
  });
}

// Puts the place in front of a message that does not name it.
std::unexpected<Error> At(const JsonPath& path, const Error& error) {
  return Fail(error.code, "{}: {}", path.Text(), error.message);
}

Status RestInferDecoder::ReadTop(std::string_view key, ondemand::value value) {
  if (key == "id") {
    TANDEM_ASSIGN(request_.id, ReadJsonString(value, top_.Member(key)));
    return {};
  }
  if (key == "parameters") return ReadRequestParameters(value);
  if (key == "inputs") return ReadInputs(value);
  if (key == "outputs") return ReadOutputs(value);
  return SkipJson(value, top_.Member(key), 1);
}

Status RestInferDecoder::ReadRequestParameters(ondemand::value value) {
  return ReadParameters(value, top_.Member("parameters"), [&](std::string_view key, const ParameterValue& parameter) {
    return ApplyRequestParameter(key, parameter, FrontEnd::kRest, request_);
  });
}

Status RestInferDecoder::ReadInputs(ondemand::value value) {
  has_inputs_ = true;
  const JsonPath path = top_.Member("inputs");
  TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
  return ForEachElement(array, path, kMaxTensors,
                        [&](std::size_t i, ondemand::value element) { return ReadInput(element, path.Element(i)); });
}

Status RestInferDecoder::ReadInput(ondemand::value value, const JsonPath& path) {
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  PendingInput pending;
  TANDEM_TRY(ForEachMember(object, path, [&](std::string_view key, ondemand::value member) {
    return ReadInputMember(key, member, path.Member(key), pending);
  }));
  TANDEM_TRY(FinishInput(path, pending));
  request_.inputs.push_back(std::move(pending.input));
  return {};
}

Status RestInferDecoder::ReadInputMember(std::string_view key, ondemand::value value, const JsonPath& path,
                                         PendingInput& pending) {
  Tensor& tensor = pending.input.tensor;
  if (key == "name") {
    TANDEM_ASSIGN(const std::string_view name, ReadName(value, path));
    if (!input_names_.Insert(name)) return Invalid("input '{}' is given twice", Excerpt(name));
    tensor.name = name;
    pending.has_name = true;
  } else if (key == "datatype") {
    TANDEM_ASSIGN(const std::string_view name, ReadJsonString(value, path));
    const auto type = ParseDataType(name);
    if (!type) return Invalid("{} is '{}', which is not a datatype", path.Text(), Excerpt(name));
    tensor.type = *type;
    pending.has_type = true;
  } else if (key == "shape") {
    TANDEM_ASSIGN(tensor.shape, ReadShape(value, path));
    pending.has_shape = true;
  } else if (key == "parameters") {
    return ReadParameters(value, path, [&](std::string_view name, const ParameterValue& parameter) -> Status {
      if (const auto status = ApplyInputParameter(name, parameter, pending.parameters); !status) {
        return At(*path.parent, status.error());
      }
      return {};
    });
  } else if (key == "data") {
    pending.has_data = true;
    return ReadData(value, path, pending);
  } else {
    return SkipJson(value, path, 3);
  }
  return {};
}

Status RestInferDecoder::ReadData(ondemand::value value, const JsonPath& path, PendingInput& pending) {
  if (!JsonToken(value).starts_with('[')) return WrongJsonType(value, path, "an array");
  if (!pending.CanReadData()) {
    if (const auto error = value.raw_json().get(pending.deferred_data)) return MalformedJson(error, path);
    return {};
  }
  TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
  TANDEM_ASSIGN(pending.input.tensor.data, ReadJsonTensor(array, pending.input.tensor, json_.size(), budget_));
  return {};
}

Status RestInferDecoder::ReadDeferredData(const JsonPath& path, PendingInput& pending) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array array;
  if (const auto error = parser.iterate(Padded(pending.deferred_data)).get(document)) return MalformedJson(error, path);
  if (const auto error = document.get_array().get(array)) return MalformedJson(error, path);
  TANDEM_ASSIGN(pending.input.tensor.data, ReadJsonTensor(array, pending.input.tensor, json_.size(), budget_));
  if (!document.at_end()) return MalformedJson(simdjson::TRAILING_CONTENT, path);
  return {};
}

Status RestInferDecoder::FinishInput(const JsonPath& path, PendingInput& pending) {
  Tensor& tensor = pending.input.tensor;
  if (!pending.has_name) return Invalid("{} has no 'name'", path.Text());
  if (!pending.has_type) return Invalid("{} ('{}') has no 'datatype'", path.Text(), Excerpt(tensor.name));
  if (!pending.has_shape) return Invalid("{} ('{}') has no 'shape'", path.Text(), Excerpt(tensor.name));
  if (!pending.deferred_data.empty()) TANDEM_TRY(ReadDeferredData(path.Member("data"), pending));

  auto shared = TakeSharedRange(pending.parameters);
  if (!shared) return At(path, shared.error());
  pending.input.shared = *std::move(shared);
  const auto size = pending.parameters.binary_data_size;
  const int sources = (pending.has_data ? 1 : 0) + (size ? 1 : 0) + (pending.input.shared ? 1 : 0);
  if (sources != 1) {
    return Invalid("input '{}' has {} of 'data', 'binary_data_size' and 'shared_memory_region'; exactly one is needed",
                   Excerpt(tensor.name), sources == 0 ? "none" : "more than one");
  }
  if (!size) return {};  // Shared memory is looked at later; JSON data was made to fit.
  const std::size_t left = binary_.size() - binary_used_;
  if (*size > left) {
    return Invalid("input '{}': binary_data_size is {} but {} bytes are left in the body", Excerpt(tensor.name), *size,
                   left);
  }
  tensor.data = binary_.Part(binary_used_, *size);
  binary_used_ += *size;
  return CheckInputData(tensor);
}

Status RestInferDecoder::ReadOutputs(ondemand::value value) {
  const JsonPath path = top_.Member("outputs");
  TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
  return ForEachElement(array, path, kMaxTensors,
                        [&](std::size_t i, ondemand::value element) { return ReadOutput(element, path.Element(i)); });
}

Status RestInferDecoder::ReadOutput(ondemand::value value, const JsonPath& path) {
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  RequestedOutput output;
  TensorParameters parameters;
  TANDEM_TRY(ForEachMember(object, path, [&](std::string_view key, ondemand::value member) -> Status {
    const JsonPath at = path.Member(key);
    if (key == "name") {
      TANDEM_ASSIGN(const std::string_view name, ReadName(member, at));
      if (!output_names_.Insert(name)) return Invalid("output '{}' is asked for twice", Excerpt(name));
      output.name = name;
      return {};
    }
    if (key != "parameters") return SkipJson(member, at, 3);
    return ReadParameters(member, at, [&](std::string_view name, const ParameterValue& parameter) -> Status {
      if (const auto status = ApplyOutputParameter(name, parameter, parameters); !status) {
        return At(path, status.error());
      }
      return {};
    });
  }));
  if (output.name.empty()) return Invalid("{} has no 'name'", path.Text());
  if (const auto status = FinishOutput(std::move(parameters), output); !status) return At(path, status.error());
  request_.outputs.push_back(std::move(output));
  return {};
}

Result<InferRequest> RestInferDecoder::Decode(ondemand::parser& parser) {
  ondemand::document document;
  if (const auto error = parser.iterate(Padded(json_)).get(document)) return MalformedJson(error, top_);
  ondemand::object object;
  const auto error = document.get_object().get(object);
  if (error == simdjson::INCORRECT_TYPE) return Invalid("the request must be a JSON object");
  if (error) return MalformedJson(error, top_);
  TANDEM_TRY(ForEachMember(object, top_, [&](auto key, ondemand::value value) { return ReadTop(key, value); }));
  if (!document.at_end()) return MalformedJson(simdjson::TRAILING_CONTENT, top_);
  if (!has_inputs_) return Invalid("the request has no 'inputs'");
  if (binary_used_ != binary_.size()) {
    return Invalid("{} surplus bytes after the last input", binary_.size() - binary_used_);
  }
  return std::move(request_);
}

Result<InferRequest> DecodeWithParser(std::string_view json, Bytes binary, const std::shared_ptr<ByteBudget>& budget) {
  if (json.starts_with(kByteOrderMark)) return Invalid("malformed JSON: the request begins with a byte-order mark");
  RestInferDecoder decoder(json, std::move(binary), budget);
  if (json.size() > kKeptParserBytes) {
    ondemand::parser parser;
    return decoder.Decode(parser);
  }
  static thread_local ondemand::parser parser;
  return decoder.Decode(parser);
}

}  // namespace

Result<InferRequest> DecodeRestInfer(const Bytes& body, std::optional<std::uint64_t> json_length, std::size_t slack,
                                     const std::shared_ptr<ByteBudget>& budget) {
  if (body.size() == 0) return Invalid("the request body is empty");
  const std::uint64_t length = json_length.value_or(body.size());
  if (length > body.size()) {
    return Invalid("Inference-Header-Content-Length is {} but the body has {} bytes", length, body.size());
  }
  if (length == 0) return Invalid("Inference-Header-Content-Length is 0 but a JSON part is required");
  const std::string_view json(reinterpret_cast<const char*>(body.view.data()), length);
  Bytes binary = body.Part(length, body.size() - length);
  try {
    if (binary.size() + slack >= kJsonSlack) return DecodeWithParser(json, std::move(binary), budget);
    AlignedBuffer copy(length + kJsonSlack);
    std::memcpy(copy.data(), json.data(), length);
    std::memset(copy.data() + length, ' ', kJsonSlack);
    return DecodeWithParser({reinterpret_cast<const char*>(copy.data()), length}, std::move(binary), budget);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kUnavailable, "not enough memory to decode a request of {} bytes", body.size());
  }
}

}  // namespace tandem
