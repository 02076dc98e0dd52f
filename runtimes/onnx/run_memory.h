#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/run_lane.h"

namespace tandem {

// All memory of all sessions of an environment, as ONNX Runtime asks for it. What a run asks for is in the lane that it
// has as long as it lasts: so any number of models has as many lanes as there are runs at once, each as long as the
// largest run of late. What is asked for outside of a run stays with a session, as does what ONNX Runtime reserves, and
// is in the C library's heap; so is what the threads of its pool ask for, which know of no run.
//
// Shared by the environment, which registers it, and by results that lie in a lane until they are sent. Thread-safe.
class RunMemory {
 public:
  static constexpr std::size_t kMostLanes = 64;

  // `bytes` is what all runs together may have, with what is reserved and set aside. Beyond it an allocation throws
  // std::bad_alloc, which ends the run, or the load, and nothing else.
  [[nodiscard]] static Result<std::shared_ptr<RunMemory>> Make(const OrtApi& api, std::uint64_t bytes);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  // To be registered with an environment, which must not outlive this.
  [[nodiscard]] OrtAllocator* allocator() { return &callbacks_; }

  // A run of this thread, as long as this object lives: what the thread asks for is in a lane.
  class Turn {
   public:
    explicit Turn(RunMemory& memory);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Ends it: bytes of the lane that it needed; 0 where all lanes were taken, and it had none.
    std::uint64_t End();

   private:
    RunMemory& memory_;
    RunLane* const outer_;  // That the thread had before.
    std::size_t lane_;      // kMostLanes: none.
  };

  // Memory that sessions have otherwise, which leaves so much less to runs.
  void SetAside(std::uint64_t bytes);
  // Gives back to the system what no run uses now.
  void Trim();

  // Bytes that sessions have outside of runs, and that lanes have.
  [[nodiscard]] std::uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used() const { return bound_.used(); }

 private:
  // What the C interface is given; its functions find their way back by the pointer.
  struct Callbacks : OrtAllocator {
    RunMemory* memory = nullptr;
  };

  RunMemory(std::uint64_t bytes, OrtPtr<OrtMemoryInfo> info);
  Status ReserveLanes();
  // Both throw std::bad_alloc.
  void* Allocate(std::size_t size);
  void* Reserve(std::size_t size);
  void Free(void* data);
  void FreeReserved(void* data);
  void TellBound() EXCLUDES(telling_);
  [[nodiscard]] std::size_t TakeLane();
  void GiveBackLane(std::size_t lane);

  // Constant after Make().
  const std::uint64_t bytes_;
  const OrtPtr<OrtMemoryInfo> info_;
  Callbacks callbacks_{};
  std::byte* range_ = nullptr;  // Owned: addresses of all lanes.
  std::size_t length_ = 0;      // Of one lane.
  std::vector<std::unique_ptr<RunLane>> lanes_;

  RunBound bound_;
  Mutex telling_;  // Held to add up the next two and tell the bound.
  std::atomic<std::uint64_t> aside_{0};
  std::atomic<std::uint64_t> reserved_{0};
  std::atomic<std::uint64_t> taken_{0};  // Lanes that runs have: a bit each.
  std::atomic<std::uint64_t> turns_{0};
};

}  // namespace tandem
