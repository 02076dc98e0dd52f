#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/ort_environment.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/slim_graph.h"
#include "runtimes/onnx/weight_pool.h"

namespace tandem {

// Where ONNX Runtime writes a model that it has rewritten, as two files in one folder.
struct RewrittenFiles {
  static constexpr const char* kWeightsName = "weights";
  // Smaller initializers stay in the graph: their values may decide on shapes, which are told without external data.
  static constexpr const char* kLeastExternal = "1024";

  std::filesystem::path folder;
  [[nodiscard]] std::filesystem::path graph() const { return folder / "graph.onnx"; }
  [[nodiscard]] std::filesystem::path weights() const { return folder / kWeightsName; }
};

// Of a session, by name.
[[nodiscard]] Result<GraphInputs> InputsOf(const OrtApi& api, const OrtSession* session);

// A model as ONNX Runtime has rewritten it for this machine, from which any number of sessions are made that have one
// copy of the weights between them. What kernels pack is packed once, too. Weights that runs read are in memory; those
// of which they read packed copies, and the graph, stay in files without names, of which nothing is in memory once a
// session is made.
//
// Immutable, thread-safe. Shared by its sessions, each of which needs it until its end.
class PreparedModel {
 public:
  // Reads the files and removes their names; `inputs` are those of the session that has written them. kUnsupported: its
  // weights cannot be shared. kTooLarge: the environment has no room for them.
  [[nodiscard]] static Result<std::shared_ptr<const PreparedModel>> Take(const OrtEnvironment& environment,
                                                                         const RewrittenFiles& files,
                                                                         GraphInputs inputs);

  // A session with these options and the weights. As the model was rewritten already, the options say that it is not to
  // be rewritten.
  [[nodiscard]] Result<OrtPtr<OrtSession>> MakeSession(OrtEnv* environment, OrtSessionOptions* options) const;

  // Of its weights, whoever else may have the same.
  [[nodiscard]] std::uint64_t weight_bytes() const { return weight_bytes_; }
  // Makes the same sessions.
  [[nodiscard]] bool Equals(const PreparedModel& other) const;

 private:
  struct Weight {
    std::string name;
    std::shared_ptr<const SharedWeight> shared;  // With whatever models have the same.
    OrtPtr<OrtValue> value;                      // Over its bytes.
  };

  PreparedModel(const OrtApi& api, WeightClaim claim, OrtPtr<OrtPrepackedWeightsContainer> packed)
      : api_(api), claim_(std::move(claim)), packed_(std::move(packed)) {}
  // Nothing of what is in files is in memory.
  void DropPages() const;
  Status AddWeights(const std::vector<ExternalTensor>& tensors, WeightPool& pool,
                    std::vector<std::shared_ptr<const SharedWeight>> weights);

  const OrtApi& api_;
  const WeightClaim claim_;
  const OrtPtr<OrtPrepackedWeightsContainer> packed_;  // Guards itself.
  // Constant after Take().
  std::shared_ptr<const MappedFile> graph_;
  GraphInputs inputs_;
  std::vector<Weight> weights_;
  std::uint64_t weight_bytes_ = 0;
};

// The prepared models that have sessions, so that the next session of the same files finds its own. Thread-safe.
class PreparedModels {
 public:
  // `key` names the files and what else decides how they are rewritten; null: there is none.
  [[nodiscard]] std::shared_ptr<const PreparedModel> Find(const std::string& key) const;
  // From now on found under that key. The same one, made from other files, takes its place.
  [[nodiscard]] std::shared_ptr<const PreparedModel> Keep(const std::string& key,
                                                          std::shared_ptr<const PreparedModel> model);

 private:
  mutable Mutex mu_;
  std::map<std::string, std::weak_ptr<const PreparedModel>> models_ GUARDED_BY(mu_);
};

}  // namespace tandem
