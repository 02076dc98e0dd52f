#include "runtimes/training/graph/model_file.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <set>

#include "runtimes/onnx/external_data.h"
#include "runtimes/training/checkpoint/durable_file.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostModelBytes = std::numeric_limits<std::int32_t>::max();
// The first version of ONNX files in which a weight need not be an input, too.
constexpr int kWeightsAlone = 4;

// An entry of a tensor's external data; 0 when it is not there.
Result<std::uint64_t> ExternalNumber(const onnx::TensorProto& tensor, std::string_view key) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() != key) continue;
    std::uint64_t number = 0;
    const char* const end = entry.value().data() + entry.value().size();
    const auto [stop, error] = std::from_chars(entry.value().data(), end, number);
    if (error != std::errc() || stop != end) {
      return Invalid("weight '{}': the {} of its external data is '{}'", tensor.name(), key, entry.value());
    }
    return number;
  }
  return 0;
}

Status ReadExternal(const fs::path& folder, onnx::TensorProto& tensor) {
  const auto location = std::ranges::find(tensor.external_data(), "location", &onnx::StringStringEntryProto::key);
  if (location == tensor.external_data().end()) {
    return Invalid("weight '{}': its external data has no location", tensor.name());
  }
  TANDEM_ASSIGN(const fs::path file, ConfineLocation(folder, location->value()));
  TANDEM_ASSIGN(const std::uint64_t offset, ExternalNumber(tensor, "offset"));
  TANDEM_ASSIGN(std::uint64_t length, ExternalNumber(tensor, "length"));
  std::error_code ec;
  const std::uint64_t size = fs::file_size(file, ec);
  if (ec || offset > size || length > size - offset) {
    return Invalid("weight '{}': its data does not lie inside '{}'", tensor.name(), location->value());
  }
  if (length == 0) length = size - offset;
  std::string bytes(length, '\0');
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  if (!in.read(bytes.data(), static_cast<std::streamsize>(length))) {
    return Invalid("weight '{}': '{}' cannot be read", tensor.name(), location->value());
  }
  tensor.set_raw_data(std::move(bytes));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return {};
}

onnx::TensorProto* FindInitializer(const std::string& name, onnx::GraphProto& graph) {
  const auto found = std::ranges::find(*graph.mutable_initializer(), name, &onnx::TensorProto::name);
  return found == graph.mutable_initializer()->end() ? nullptr : &*found;
}

// Takes out the node that fills `name` with a constant, or hands a weight on under that name. False when there is none.
bool RemoveFill(const std::string& name, onnx::GraphProto& graph) {
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& node = graph.node(i);
    const bool fills = node.op_type() == "ConstantOfShape" || node.op_type() == "Identity";
    if (!fills || node.output_size() != 1 || node.output(0) != name) continue;
    graph.mutable_node()->DeleteSubrange(i, 1);
    return true;
  }
  return false;
}

Result<onnx::TensorProto*> AddInitializer(const std::string& name, const at::Tensor& weight, bool as_input,
                                          onnx::GraphProto& graph) {
  TANDEM_ASSIGN(const int type, OnnxTypeOf(weight.scalar_type()));
  onnx::TensorProto* const tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  if (as_input) {
    onnx::ValueInfoProto* const input = graph.add_input();
    input->set_name(name);
    auto* const tensor_type = input->mutable_type()->mutable_tensor_type();
    tensor_type->set_elem_type(type);
    for (const std::int64_t size : weight.sizes()) tensor_type->mutable_shape()->add_dim()->set_dim_value(size);
  }
  return tensor;
}

}  // namespace

Result<onnx::ModelProto> LoadModel(const fs::path& file) {
  std::error_code ec;
  const std::uint64_t size = fs::file_size(file, ec);
  if (ec) return Fail(ErrorCode::kNotFound, "model '{}' cannot be opened: {}", file.string(), ec.message());
  if (size > kMostModelBytes) return Fail(ErrorCode::kTooLarge, "model '{}' has more than 2 GB", file.string());
  std::ifstream in(file, std::ios::binary);
  onnx::ModelProto model;
  if (!in || !model.ParseFromIstream(&in)) return Invalid("model '{}' is no ONNX file", file.string());
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    TANDEM_TRY(ReadExternal(file.parent_path(), tensor));
  }
  return model;
}

Status PutWeights(const std::map<std::string, at::Tensor>& weights, onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const auto& [name, weight] : weights) {
    onnx::TensorProto* tensor = FindInitializer(name, graph);
    if (tensor == nullptr) {
      if (!RemoveFill(name, graph)) return Invalid("the model has no weight '{}'", name);
      TANDEM_ASSIGN(tensor, AddInitializer(name, weight, model.ir_version() < kWeightsAlone, graph));
    }
    TANDEM_TRY(WriteTensor(weight, *tensor));
  }
  return {};
}

void PutMetadata(const std::string& key, const std::string& value, onnx::ModelProto& model) {
  auto& entries = *model.mutable_metadata_props();
  const auto found = std::ranges::find(entries, key, &onnx::StringStringEntryProto::key);
  onnx::StringStringEntryProto* const entry = found == entries.end() ? entries.Add() : &*found;
  entry->set_key(key);
  entry->set_value(value);
}

Status SaveModel(const onnx::ModelProto& model, const fs::path& file) {
  if (model.ByteSizeLong() > kMostModelBytes) {
    return Fail(ErrorCode::kTooLarge, "the model has {} bytes; an ONNX file can have {}", model.ByteSizeLong(),
                kMostModelBytes);
  }
  const std::string bytes = model.SerializeAsString();
  TANDEM_ASSIGN(DurableFile out, DurableFile::Create(file));
  TANDEM_TRY(out.Write(std::as_bytes(std::span(bytes))));
  return out.Commit();
}

}  // namespace tandem::training
