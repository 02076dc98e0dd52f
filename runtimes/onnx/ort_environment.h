#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

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
  // Bytes that all runs together may use for activations, with the weights of all loaded models counted in: ONNX
  // Runtime's arena has one limit for both. Beyond it a run or a load fails with kTooLarge. 0: three quarters of the
  // memory that this process may have, so that no request and no corrupt model makes the system kill it.
  std::uint64_t max_activation_bytes = 0;
  // Hears ONNX Runtime's own messages, warnings and worse, from any thread. Unset: they are dropped.
  std::function<void(OrtSeverity, std::string_view)> log;
};

// A model's share of the memory for weights; gives it back when it goes. Borrows the counter from the environment.
class WeightClaim {
 public:
  WeightClaim(std::atomic<std::uint64_t>& total, std::uint64_t bytes) : total_(&total), bytes_(bytes) {}
  WeightClaim(WeightClaim&& other) noexcept : total_(std::exchange(other.total_, nullptr)), bytes_(other.bytes_) {}
  WeightClaim& operator=(WeightClaim&&) = delete;
  ~WeightClaim() {
    if (total_ != nullptr) total_->fetch_sub(bytes_);
  }

 private:
  std::atomic<std::uint64_t>* total_;
  const std::uint64_t bytes_;
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
  [[nodiscard]] int intra_op_threads() const { return intra_op_threads_; }
  [[nodiscard]] bool spins() const { return spin_; }

  // Takes memory of the arena's limit for weights, or says how much there is. Weights that ONNX Runtime keeps are
  // counted in the arena without being checked against its limit: more than the limit would turn it off. All claims
  // together may have the whole of it, or only one part of so many.
  [[nodiscard]] Result<WeightClaim> ClaimWeights(std::uint64_t bytes, std::uint64_t parts = 1) const;

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
  std::uint64_t arena_bytes_ = 0;
  int intra_op_threads_ = 1;
  bool spin_ = false;

  mutable std::atomic<std::uint64_t> weight_bytes_{0};  // Claimed by live sessions.
};

}  // namespace tandem
