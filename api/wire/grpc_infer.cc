#include "api/wire/grpc_infer.h"

#include <set>
#include <string_view>
#include <utility>

#include "api/wire/grpc_contents.h"
#include "api/wire/infer_parameters.h"
#include "api/wire/json_text.h"

namespace tandem {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using ParameterMap = google::protobuf::Map<std::string, InferParameter>;

Result<ParameterValue> ReadParameter(const std::string& key, const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam: return parameter.bool_param();
    case InferParameter::kInt64Param: return parameter.int64_param();
    case InferParameter::kUint64Param: {
      const std::uint64_t value = parameter.uint64_param();
      if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
      return value;
    }
    case InferParameter::kDoubleParam: return parameter.double_param();
    case InferParameter::kStringParam: return std::string_view(parameter.string_param());
    case InferParameter::PARAMETER_CHOICE_NOT_SET: break;
  }
  return Invalid("parameter '{}' has no value", Excerpt(key));
}

template <typename Apply>
Status ReadParameters(const ParameterMap& parameters, Apply apply) {
  for (const auto& [key, parameter] : parameters) {
    TANDEM_ASSIGN(const ParameterValue value, ReadParameter(key, parameter));
    TANDEM_TRY(apply(key, value));
  }
  return {};
}

Status CheckName(std::string_view kind, int index, const std::string& name, std::set<std::string_view>& seen) {
  if (name.empty()) return Invalid("{}s[{}] has no name", kind, index);
  if (name.size() > kMaxNameBytes) {
    return Invalid("{}s[{}]: the name has {} bytes; at most {} are allowed", kind, index, name.size(), kMaxNameBytes);
  }
  if (!seen.insert(name).second) return Invalid("{} '{}' is given twice", kind, Excerpt(name));
  return {};
}

std::unexpected<Error> At(std::string_view kind, const std::string& name, const Error& error) {
  return Fail(error.code, "{} '{}': {}", kind, Excerpt(name), error.message);
}

Status ReadHead(const ModelInferRequest::InferInputTensor& from, InferInput& input) {
  Tensor& tensor = input.tensor;
  tensor.name = from.name();
  const auto type = ParseDataType(from.datatype());
  if (!type) {
    return Invalid("input '{}': '{}' is not a datatype", Excerpt(from.name()), Excerpt(from.datatype()));
  }
  tensor.type = *type;
  if (static_cast<std::size_t>(from.shape_size()) > kMaxRank) {
    return Invalid("input '{}': shape has {} dimensions; at most {} are allowed", Excerpt(from.name()),
                   from.shape_size(), kMaxRank);
  }
  tensor.shape.assign(from.shape().begin(), from.shape().end());

  TensorParameters parameters;
  auto status = ReadParameters(from.parameters(), [&](std::string_view key, const ParameterValue& value) {
    return ApplyInputParameter(key, value, parameters);
  });
  if (!status) return At("input", from.name(), status.error());
  auto shared = TakeSharedRange(parameters);
  if (!shared) return At("input", from.name(), shared.error());
  input.shared = *std::move(shared);
  return {};
}

Status ReadInputs(const std::shared_ptr<const ModelInferRequest>& message, InferRequest& request) {
  const int raw_count = message->raw_input_contents_size();
  int raw_used = 0;
  std::set<std::string_view> seen;
  for (int i = 0; i < message->inputs_size(); ++i) {
    const auto& from = message->inputs(i);
    TANDEM_TRY(CheckName("input", i, from.name(), seen));
    InferInput& input = request.inputs.emplace_back();
    TANDEM_TRY(ReadHead(from, input));
    if (from.has_contents() && (raw_count > 0 || input.shared)) {
      return Invalid("input '{}' has contents beside {}; exactly one is needed", Excerpt(from.name()),
                     input.shared ? "shared memory" : "the request's raw_input_contents");
    }
    if (input.shared) continue;
    if (raw_count == 0) {
      TANDEM_ASSIGN(input.tensor.data, ReadTypedContents(from.contents(), input.tensor));
    } else {
      if (raw_used == raw_count) {
        return Invalid("input '{}' has no data: raw_input_contents holds only {} entries", Excerpt(from.name()),
                       raw_count);
      }
      input.tensor.data = {std::as_bytes(std::span(message->raw_input_contents(raw_used++))), message};
    }
    TANDEM_TRY(CheckInputData(input.tensor));
  }
  if (raw_used != raw_count) {
    return Invalid("raw_input_contents holds {} entries but {} inputs take one", raw_count, raw_used);
  }
  return {};
}

Status ReadOutputs(const ModelInferRequest& message, InferRequest& request) {
  std::set<std::string_view> seen;
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& from = message.outputs(i);
    TANDEM_TRY(CheckName("output", i, from.name(), seen));
    RequestedOutput& output = request.outputs.emplace_back();
    output.name = from.name();
    TensorParameters parameters;
    auto status = ReadParameters(from.parameters(), [&](std::string_view key, const ParameterValue& value) {
      return ApplyOutputParameter(key, value, parameters);
    });
    if (status) status = FinishOutput(std::move(parameters), output);
    if (!status) return At("output", from.name(), status.error());
  }
  return {};
}

}  // namespace

Result<InferRequest> DecodeGrpcInfer(std::shared_ptr<const ModelInferRequest> message) {
  InferRequest request;
  request.model = message->model_name();
  request.version = message->model_version();
  request.id = message->id();
  if (static_cast<std::size_t>(message->inputs_size()) > kMaxTensors) {
    return Invalid("the request has {} inputs; at most {} are allowed", message->inputs_size(), kMaxTensors);
  }
  if (static_cast<std::size_t>(message->outputs_size()) > kMaxTensors) {
    return Invalid("the request asks for {} outputs; at most {} are allowed", message->outputs_size(), kMaxTensors);
  }
  TANDEM_TRY(ReadParameters(message->parameters(), [&](std::string_view key, const ParameterValue& value) {
    return ApplyRequestParameter(key, value, FrontEnd::kGrpc, request);
  }));
  TANDEM_TRY(ReadInputs(message, request));
  TANDEM_TRY(ReadOutputs(*message, request));
  return request;
}

Status EncodeGrpcInfer(const InferResponse& response, std::span<const RequestedOutput> requested,
                       ModelInferResponse& message) {
  if (!requested.empty() && requested.size() != response.outputs.size()) {
    return Fail(ErrorCode::kInternal, "{} outputs were asked for but {} were made", requested.size(),
                response.outputs.size());
  }
  message.set_model_name(response.model);
  message.set_model_version(response.version);
  message.set_id(response.id);
  for (std::size_t i = 0; i < response.outputs.size(); ++i) {
    const Tensor& tensor = response.outputs[i];
    auto& output = *message.add_outputs();
    output.set_name(tensor.name);
    output.set_datatype(std::string(DataTypeName(tensor.type)));
    output.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    if (requested.empty() || !requested[i].shared) {
      message.add_raw_output_contents(tensor.data.view.data(), tensor.data.size());
      continue;
    }
    const SharedRange& shared = *requested[i].shared;
    auto& parameters = *output.mutable_parameters();
    parameters["shared_memory_region"].set_string_param(shared.region);
    if (shared.offset > 0) parameters["shared_memory_offset"].set_int64_param(static_cast<std::int64_t>(shared.offset));
    const std::uint64_t size = tensor.data.size() > 0 ? tensor.data.size() : shared.byte_size;
    parameters["shared_memory_byte_size"].set_int64_param(static_cast<std::int64_t>(size));
    message.add_raw_output_contents();
  }
  return {};
}

}  // namespace tandem
