#include "server/repository/onnx_session_factory.h"

#include "runtimes/onnx/model_metadata.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/session_factory.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem::repository {
namespace {

// Triton's levels: -1 the basic rewrites, 1 the extended ones, anything else all.
GraphOptimization OptimizationOf(std::optional<int> level) {
  if (level && *level < 0) return GraphOptimization::kBasic;
  if (level && *level == 1) return GraphOptimization::kExtended;
  return GraphOptimization::kAll;
}

}  // namespace

Result<std::unique_ptr<InferenceSession>> OnnxSessionFactory::Create(const SessionRequest& request) {
  SessionSpec spec{.name = request.model,
                   .model = request.file,
                   .kind = request.format == ModelFormat::kTensorRtPlan ? ModelKind::kPlan : ModelKind::kOnnx,
                   .root = request.allowed_root,
                   .optimization = OptimizationOf(request.graph_level),
                   .optional_inputs = request.optional_inputs,
                   .outputs = request.outputs,
                   .one_thread = request.one_thread,
                   .scratch = request.scratch,
                   .run_bytes = request.run_bytes,
                   .profile = request.profile};
  for (const ProviderChoice& choice : request.providers) {
    TANDEM_ASSIGN(const ProviderKind kind, ParseProvider(choice.name));
    spec.providers.push_back({.kind = kind, .device_id = request.gpu, .options = choice.options});
  }
  return CreateSession(environment_, spec);
}

void OnnxSessionFactory::ReturnMemory() {
  ReturnFreedMemory(*environment_);
}

std::map<std::string, std::string> OnnxSessionFactory::Metadata(const SessionRequest& request) {
  if (request.format != ModelFormat::kOnnx) return {};
  return ReadOnnxMetadata(request.file).value_or(std::map<std::string, std::string>());
}

Result<GraphExtent> OnnxSessionFactory::Extent(const SessionRequest& request) {
  if (request.format != ModelFormat::kOnnx) return SessionFactory::Extent(request);
  TANDEM_ASSIGN(const OnnxFileInfo info, InspectOnnxFile(request.file));
  return GraphExtent{.nodes = info.nodes, .tensor_bytes = info.tensor_bytes, .has_subgraphs = info.has_subgraphs};
}

}  // namespace tandem::repository
