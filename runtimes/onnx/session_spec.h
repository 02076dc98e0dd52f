#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "profiler/run_bytes.h"

namespace tandem {

// What computes a model's nodes. Nodes that none of the listed providers can run fall to the CPU.
enum class ProviderKind { kCpu, kOneDnn, kCuda, kTensorRt };

// "cpu", "onednn", "cuda", "tensorrt": as in configurations and on the command line.
[[nodiscard]] std::string_view ProviderName(ProviderKind kind);
// Also takes "dnnl" and "trt"; an error names the choices.
[[nodiscard]] Result<ProviderKind> ParseProvider(std::string_view name);

struct ProviderSpec {
  ProviderKind kind = ProviderKind::kCpu;
  int device_id = 0;                           // Of a GPU provider.
  void* stream = nullptr;                      // A cudaStream_t to run on, borrowed; null: the provider makes its own.
  std::map<std::string, std::string> options;  // By the provider's own names; an unknown one is an error.
};

enum class ModelKind { kByName, kOnnx, kPlan };

enum class GraphOptimization { kNone, kBasic, kExtended, kAll };

// Everything that decides how one version of a model is loaded.
struct SessionSpec {
  std::string name;             // For messages.
  std::filesystem::path model;  // model.onnx or model.plan.
  ModelKind kind = ModelKind::kByName;
  // The model, its folder and all that it refers to must lie inside, links resolved. Empty: the folder of `model`.
  std::filesystem::path root;
  std::vector<ProviderSpec> providers;  // In order of preference; empty: CPU.
  GraphOptimization optimization = GraphOptimization::kAll;
  // Graph inputs with a default value (initializer) that requests may give: they join the signature as optional inputs.
  std::vector<std::string> optional_inputs;
  // The outputs that are to be served; one that cannot be and is not among them is left out. Empty: all.
  std::vector<std::string> outputs;
  // Runs use the thread that asks for them and no other: a second session for one that has all threads. On the CPU
  // only. kTooLarge when its weights are large, or more than half of the memory for weights is taken: it can be done
  // without.
  bool one_thread = false;
  // A folder that is there, empty and nobody else's while the session is made. With it all sessions of a model have one
  // copy of the weights (prepared_model.h), on the CPU; without it each has its own.
  std::filesystem::path scratch;
  // Told what runs take of memory; shared with whoever counts it. Null: nobody does.
  std::shared_ptr<RunBytes> run_bytes;
  // How the path of a file begins that what every node took is written to when the session goes (see ort_profile.h).
  // Empty: nothing is noted, and runs are faster.
  std::filesystem::path profile;
};

}  // namespace tandem
