#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "bench/pace.h"
#include "bench/peer_spec.h"
#include "bench/server_process.h"

namespace tandem {
class OrtEnvironment;
}

namespace tandem::bench {

// What every measurement of a run may use. Owned by the caller of RunScenario(); used by one thread.
struct BenchContext {
  Pace pace;  // Of the measurement that runs.

  // Constant during a run.
  std::vector<PeerSpec> peers;                // Of the scenario.
  std::filesystem::path program;              // tandem.
  std::filesystem::path bench;                // This program.
  std::filesystem::path peer_folder;          // bench/peers of the checkout.
  std::filesystem::path folder;               // Of the scenario file.
  std::filesystem::path test_models;          // Of Debian's libonnx-testdata.
  std::filesystem::path work;                 // A temporary folder: models, logs.
  std::string ort_library;                    // Empty: the system's.
  int threads = 1;                            // Of one inference, in our server, in peers and bare.
  std::function<void(std::string_view)> say;  // Progress, for people.
  const std::atomic<bool>* stop = nullptr;    // Borrowed; may be null.

  // Made by the first who needs ONNX Runtime in this process; shared with sessions, which may outlive us.
  std::shared_ptr<const OrtEnvironment> environment;

  [[nodiscard]] bool Stopped() const { return stop != nullptr && stop->load(); }
  // kCancelled once a person wants it to end.
  [[nodiscard]] Status CheckStop() const;
};

// Writes the model into the work folder the first time; its file there. "tiny" (an MLP 64→64→64), "squeezenet" and
// "shufflenet" (of Debian's libonnx-testdata), "resnet50" (as bench/training has it), or the path of an ONNX file, seen
// from the folder of the scenario.
[[nodiscard]] Result<std::filesystem::path> ModelFile(const BenchContext& context, const std::string& model);
// By what a server knows it: its own name, or that of its file without the extension.
[[nodiscard]] std::string ModelName(const std::string& model);

// `tandem serve` with this model, or with none when it is empty, these flags and the threads of the run.
[[nodiscard]] Result<std::unique_ptr<ServerProcess>> StartServer(const BenchContext& context, const std::string& model,
                                                                 std::vector<std::string> flags = {});
// The same in these control groups, with as many threads as it finds right there.
[[nodiscard]] Result<std::unique_ptr<ServerProcess>> StartServerIn(const BenchContext& context,
                                                                   const std::string& model,
                                                                   std::vector<std::filesystem::path> groups,
                                                                   std::vector<std::string> flags);

}  // namespace tandem::bench
