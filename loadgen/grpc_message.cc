#include "loadgen/grpc_message.h"

#include <algorithm>

#include "api/wire/json_text.h"
#include "api/wire/proto/inference.pb.h"

namespace tandem::loadgen {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool IsValueCharacter(char c) {
  return c >= ' ' && c <= '~';
}

}  // namespace

Result<std::string> SerialiseInferRequest(const GrpcInferRequest& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  for (const Tensor& tensor : request.inputs) {
    TANDEM_TRY(CheckTensorData(tensor));
    auto& input = *message.add_inputs();
    input.set_name(tensor.name);
    input.set_datatype(std::string(DataTypeName(tensor.type)));
    for (const std::int64_t dim : tensor.shape) input.add_shape(dim);
    message.add_raw_input_contents(tensor.data.view.data(), tensor.data.size());
  }
  for (const std::string& output : request.outputs) message.add_outputs()->set_name(output);
  auto& parameters = *message.mutable_parameters();
  if (request.slo_ms) parameters["slo_ms"].set_double_param(*request.slo_ms);
  if (request.priority) parameters["priority"].set_uint64_param(*request.priority);
  std::string bytes;
  if (!message.SerializeToString(&bytes)) {
    return Invalid("the inputs of '{}' are too large for gRPC", Excerpt(request.model));
  }
  return bytes;
}

Status CheckMetadata(const std::vector<std::pair<std::string, std::string>>& metadata) {
  for (const auto& [name, value] : metadata) {
    if (name.empty() || !std::ranges::all_of(name, IsNameCharacter)) {
      return Invalid("metadata '{}': a name has lower-case letters, digits, '-', '_' and '.' only", Excerpt(name));
    }
    if (name.starts_with("grpc-") || name.ends_with("-bin")) {
      return Invalid("metadata '{}': names that begin with 'grpc-' or end with '-bin' are gRPC's own", Excerpt(name));
    }
    if (!std::ranges::all_of(value, IsValueCharacter)) {
      return Invalid("metadata '{}': its value must be printable ASCII", Excerpt(name));
    }
  }
  return {};
}

}  // namespace tandem::loadgen
