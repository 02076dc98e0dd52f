#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/inference_session.h"
#include "api/base/result.h"
#include "profiler/run_bytes.h"
#include "server/repository/layout.h"

namespace tandem::repository {

// An execution provider by the name that a configuration gives it ("cuda", "tensorrt", "onednn", "cpu"), and its
// options as written.
struct ProviderChoice {
  std::string name;
  std::map<std::string, std::string> options;

  friend bool operator==(const ProviderChoice&, const ProviderChoice&) = default;
};

enum class DeviceKind { kAuto, kCpu, kGpu };

// All that a runtime needs to make a session of one version.
struct SessionRequest {
  std::string model;
  std::int64_t version = 0;
  std::filesystem::path file;
  ModelFormat format = ModelFormat::kOnnx;
  std::filesystem::path allowed_root;  // The file and its external data must lie below it, links followed.
  DeviceKind device = DeviceKind::kAuto;
  int gpu = 0;
  std::vector<ProviderChoice> providers;     // In order of preference; empty: the runtime's own.
  std::optional<int> graph_level;            // optimization.graph.level
  std::vector<std::string> optional_inputs;  // Initializers that the configuration offers as optional inputs.
  std::vector<std::string> outputs;          // Those that the configuration lists; empty: all.
  bool one_thread = false;                   // Runs use no thread but the one that asks for them. On the CPU only.
  // An empty folder for files of a moment; empty: none. With it sessions of one file share their weights.
  std::filesystem::path scratch;
  // Told what runs take of memory; shared by the sessions of a version and whoever counts it. Null: nobody does.
  std::shared_ptr<RunBytes> run_bytes;
  // How the path of a file begins that what its nodes took is written to when the session goes; empty: none.
  std::filesystem::path profile;
};

// How much there is to a model.
struct GraphExtent {
  std::uint64_t nodes = 0;
  std::uint64_t tensor_bytes = 0;  // Of weights and constants.
  bool has_subgraphs = false;      // Some nodes may run more than once.
};

// Makes sessions. Borrowed by ModelRepository, which calls it from its loading threads, several at once; it must
// outlive the repository and every session it made.
class SessionFactory {
 public:
  virtual ~SessionFactory() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<InferenceSession>> Create(const SessionRequest& request) = 0;
  // Gives the system back what sessions that have gone have left. Takes milliseconds.
  virtual void ReturnMemory() {}
  // What the file says of itself, by key: hints for people. Empty where its format has no such thing.
  [[nodiscard]] virtual std::map<std::string, std::string> Metadata(const SessionRequest& /*request*/) { return {}; }
  // Of the request's file; kUnsupported where nobody can tell what its nodes take.
  [[nodiscard]] virtual Result<GraphExtent> Extent(const SessionRequest& request) {
    return Fail(ErrorCode::kUnsupported, "model '{}' cannot be profiled: only ONNX models can", request.model);
  }
};

}  // namespace tandem::repository
