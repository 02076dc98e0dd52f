#pragma once

#include <memory>
#include <optional>

#include "api/base/result.h"
#include "server/cli/demo_training.h"
#include "server/cli/interruption.h"
#include "server/lifecycle/server.h"

namespace tandem::cli {

// The same models and the same training in a server that manages nothing: the demo compares with it. Its job never ends
// and is never published. Used by main alone.
class UnmanagedServer {
 public:
  // `options` are those of the demo's server; `state` is a folder of its own. Returns when the job has made a step, or
  // nullptr when it was interrupted.
  [[nodiscard]] static Result<std::unique_ptr<UnmanagedServer>> Start(ServeOptions options, const std::string& state,
                                                                      const std::string& job,
                                                                      const Interruption& interruption);

  [[nodiscard]] int port() const { return server_->ports().http; }
  [[nodiscard]] TrainingStatus Seen() const { return training_->Seen(); }

 private:
  UnmanagedServer() = default;

  std::unique_ptr<Server> server_;
  std::unique_ptr<DemoTraining> training_;  // Goes first.
};

}  // namespace tandem::cli
