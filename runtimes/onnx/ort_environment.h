#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/result.h"
#include "runtimes/onnx/ort_library.h"
#include "runtimes/onnx/run_memory.h"
#include "runtimes/onnx/weight_pool.h"

struct OrtEnv;
struct OrtSession;

namespace tandem {

class PreparedModels;

enum class OrtSeverity { kVerbose, kInfo, kWarning, kError, kFatal };

struct EnvironmentOptions {
  // Threads that one run may use, the calling one included; all sessions share them. The caller knows the affinity and
  // the CPU quota.
  int intra_op_threads = 1;
  // The core that each of these keeps to, but for the calling one; empty: they run wherever the kernel puts them.
  std::vector<int> cores;
  // Idle threads poll for work: faster by microseconds, at the price of whole cores. For inference-only machines.
  bool spin = false;
  // Bytes that all runs together may use for activations, with the weights of all loaded models counted in. Beyond it a
  // run or a load fails with kTooLarge. 0: three quarters of the memory that this process may have, so that no request
  // and no corrupt model makes the system kill it.
  std::uint64_t max_activation_bytes = 0;
  // Hears ONNX Runtime's own messages, warnings and worse, from any thread. Unset: they are dropped.
  std::function<void(OrtSeverity, std::string_view)> log;
};

// What all live sessions have claimed for their weights. Thread-safe.
class ClaimedWeights {
 public:
  explicit ClaimedWeights(std::shared_ptr<RunMemory> runs) : runs_(std::move(runs)) {}

  // False when that would be more than `limit`.
  [[nodiscard]] bool Add(std::uint64_t bytes, std::uint64_t limit);
  void Remove(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(); }

 private:
  const std::shared_ptr<RunMemory> runs_;  // Shared with the environment; has what is left.
  std::atomic<std::uint64_t> bytes_{0};
};

// A model's share of the memory for weights; gives it back when it goes. Borrows the sum from the environment.
class WeightClaim {
 public:
  WeightClaim(ClaimedWeights& claimed, std::uint64_t bytes) : claimed_(&claimed), bytes_(bytes) {}
  WeightClaim(WeightClaim&& other) noexcept : claimed_(std::exchange(other.claimed_, nullptr)), bytes_(other.bytes_) {}
  WeightClaim& operator=(WeightClaim&&) = delete;
  ~WeightClaim() {
    if (claimed_ != nullptr) claimed_->Remove(bytes_);
  }

 private:
  ClaimedWeights* claimed_;
  const std::uint64_t bytes_;
};

// The ONNX Runtime environment: one thread pool for all sessions, and memory that their runs take turns in. One at a
// time per process, since ONNX Runtime itself keeps only one and would ignore the options of a second. Constant after
// construction, thread-safe; but Create diverts std::cerr for a moment, so call it before other threads start. Shared
// by main() and every session, because a session in use may outlive the repository that made it.
class OrtEnvironment {
 public:
  // The name of the threads of its pool.
  static constexpr std::string_view kPoolThreads = "ort-pool";

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

  // Takes memory for weights of what runs could have else, or says how much there is. All claims together may have all
  // but what is left for the runs, or only one part of so many.
  [[nodiscard]] Result<WeightClaim> ClaimWeights(std::uint64_t bytes, std::uint64_t parts = 1) const;

  // To whoever hears ONNX Runtime's messages.
  void Tell(std::string_view text) const;

  // What sessions share; guard themselves.
  [[nodiscard]] WeightPool& weight_pool() const { return weight_pool_; }
  [[nodiscard]] PreparedModels& prepared_models() const { return *prepared_models_; }

  // Where the runs of all sessions have their memory.
  [[nodiscard]] const std::shared_ptr<RunMemory>& run_memory() const { return runs_; }

 private:
  using LogFunction = std::function<void(OrtSeverity, std::string_view)>;

  OrtEnvironment(std::unique_ptr<const OrtLibrary> library, LogFunction log);
  Status Start(const EnvironmentOptions& options);
  Status StartRuns(std::uint64_t max_bytes);
  // The first session of a process, of a model that does nothing.
  Status MakeFirstSession();

  const std::unique_ptr<const OrtLibrary> library_;
  const LogFunction log_;
  // Constant after Start().
  OrtEnv* env_ = nullptr;
  std::shared_ptr<RunMemory> runs_;  // Shared with results that lie in it until they are sent.
  std::unique_ptr<ClaimedWeights> claimed_;
  std::uint64_t memory_bytes_ = 0;
  int intra_op_threads_ = 1;
  bool spin_ = false;

  mutable WeightPool weight_pool_;
  const std::unique_ptr<PreparedModels> prepared_models_;
};

}  // namespace tandem
