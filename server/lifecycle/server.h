#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "api/base/result.h"
#include "server/lifecycle/serve_options.h"

namespace tandem {

// The ports that a running server listens on; 0 where it does not.
struct ServerPorts {
  int http = 0;
  int grpc = 0;
  int metrics = 0;
};

// A whole running server: owns every part, starts them in order, drains and stops them in reverse. Made by any
// thread; whoever destroys it must have no other call under way.
class Server {
 public:
  // Listens, so that probes see a live server, but serves no model yet. An error leaves nothing running.
  [[nodiscard]] static Result<std::unique_ptr<Server>> Start(const ServeOptions& options);
  // Loads what the options name; then the server is ready. Blocks; call it once, from any thread. BeginDrain() ends it
  // early: with the models that have begun to load.
  [[nodiscard]] Status LoadModels();
  // Stops at once: what still waits is answered with 503.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const ServerPorts& ports() const;

  // Looks at the model repository again, in the background.
  void Rescan();

  // Writes down what was learnt of runs, in the background. To be called now and then.
  void SaveRuns();

  // Has threads of runs keep to their cores again when these were gone. To be called now and then; while something is
  // trained it happens every second.
  void LookAtCores();

  // Readiness goes false and new work is refused.
  void BeginDrain();
  // Waits until what is under way has been answered; false when the time is over first.
  [[nodiscard]] bool WaitDrained(std::chrono::milliseconds at_most);

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
