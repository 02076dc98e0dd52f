#include "runtimes/training/graph/free_batch.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "api/base/format.h"
#include "runtimes/training/graph/graph_search.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

// The first dimension of all inputs, if it is fixed and the same; else 0.
std::int64_t FixedBatch(const onnx::GraphProto& graph) {
  std::int64_t batch = 0;
  for (const auto& input : graph.input()) {
    if (InitializerOf(graph, input.name()) != nullptr) continue;
    const auto& shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0 || shape.dim(0).dim_value() <= 0) return 0;
    if (batch != 0 && batch != shape.dim(0).dim_value()) return 0;
    batch = shape.dim(0).dim_value();
  }
  return batch;
}

}  // namespace

void FreeBatchDimension(onnx::GraphProto& graph) {
  const std::int64_t batch = FixedBatch(graph);
  if (batch == 0) return;
  for (auto& input : *graph.mutable_input()) {
    if (InitializerOf(graph, input.name()) != nullptr) continue;
    input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->clear_dim_value();
  }
  for (auto& node : *graph.mutable_node()) {
    if (node.op_type() != "Reshape" || node.input_size() != 2) continue;
    const auto* const shape = InitializerOf(graph, node.input(1));
    if (shape == nullptr) continue;
    const auto value = ReadTensor(*shape);
    if (!value || value->scalar_type() != at::kLong || value->dim() != 1 || value->numel() < 2) continue;
    if ((*value)[0].item<std::int64_t>() != batch) continue;
    // 0 takes over the dimension of what is reshaped. The shape may serve other nodes, so this one gets its own.
    const at::Tensor freed = value->clone();
    freed[0].fill_(0);
    onnx::TensorProto* const own = graph.add_initializer();
    own->set_name(Format("{}/free_batch/{}", node.input(1), node.output(0)));
    own->set_data_type(onnx::TensorProto::INT64);
    if (!WriteTensor(freed, *own)) continue;
    node.set_input(1, own->name());
  }
}

}  // namespace tandem::training
