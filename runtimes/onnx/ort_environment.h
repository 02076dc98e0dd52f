#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "api/base/result.h"
#include "runtimes/onnx/ort_library.h"

struct OrtEnv;
struct OrtSession;

namespace tandem {

enum class OrtSeverity { kVerbose, kInfo, kWarning, kError, kFatal };

struct EnvironmentOptions {
  // Threads that one run may use, the calling one included; all sessions share them. The caller knows the affinity and
  // the CPU quota.
  int intra_op_threads = 1;
  // Idle threads poll for work: faster by microseconds, at the price of whole cores. For inference-only machines.
  bool spin = false;
  // Bytes that all runs together may use for activations; beyond it a run fails with kTooLarge. 0: half of the memory
  // that this process may have, so that no request and no corrupt model makes the system kill it.
  std::uint64_t max_activation_bytes = 0;
  // Hears ONNX Runtime's own messages, warnings and worse, from any thread. Unset: they are dropped.
  std::function<void(OrtSeverity, std::string_view)> log;
};

// The ONNX Runtime environment: one thread pool and one memory arena for all sessions. One at a time per process, since
// ONNX Runtime itself keeps only one and would ignore the options of a second. Constant after construction,
// thread-safe; but Create diverts std::cerr for a moment, so call it before other threads start. Shared by main() and
// every session, because a session in use may outlive the repository that made it.
class OrtEnvironment {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const OrtEnvironment>> Create(std::unique_ptr<const OrtLibrary> library,
                                                                            EnvironmentOptions options);
  ~OrtEnvironment();
  OrtEnvironment(const OrtEnvironment&) = delete;
  OrtEnvironment& operator=(const OrtEnvironment&) = delete;

  [[nodiscard]] const OrtLibrary& library() const { return *library_; }
  [[nodiscard]] const OrtApi& api() const { return library_->api(); }
  [[nodiscard]] OrtEnv* handle() const { return env_; }

  // Gives activation memory that no run uses now back to the system. Some ten microseconds, and the next large run
  // has to fault its memory in again.
  void TrimArena() const;

 private:
  using LogFunction = std::function<void(OrtSeverity, std::string_view)>;

  OrtEnvironment(std::unique_ptr<const OrtLibrary> library, LogFunction log);
  Status Start(const EnvironmentOptions& options);
  Status RegisterArena(std::uint64_t max_bytes);
  Status StartTrimmer();

  const std::unique_ptr<const OrtLibrary> library_;
  const LogFunction log_;
  // Constant after Start().
  OrtEnv* env_ = nullptr;
  OrtSession* trimmer_ = nullptr;  // A model that does nothing: only a run can trim the arena.
};

}  // namespace tandem
