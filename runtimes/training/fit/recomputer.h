#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtimes/training/fit/fit_plan.h"
#include "runtimes/training/fit/saved_tensors.h"
#include "runtimes/training/fit/segment_script.h"
#include "runtimes/training/graph/program.h"

namespace tandem::training {

// Hears of what is computed a second time. Called on the training thread, while a gradient is computed.
class ReplayListener {
 public:
  virtual ~ReplayListener() = default;
  // A step of the program is about to be computed again.
  virtual void BeginAgain(std::size_t step) = 0;
  // The last has been, and the gradient that needed it goes on.
  virtual void EndAgain() = 0;
};

// Follows a plan: of what autograd saves in a run of a program it holds what the plan says, and computes the rest again
// when the first gradient needs it, from the same values and the same random numbers, without keeping statistics twice.
// Autograd's own graph stays as it is, so gradients are computed and added up in the same order, and are the same bit
// for bit. Training thread only; outlives the gradients of the runs that it was the watcher of.
class Recomputer final : public RunWatcher, public SavedTensorKeeper {
 public:
  // Borrows both.
  Recomputer(const Program& program, const FitPlan& plan, ReplayListener& listener);

  // A run begins, which it is the watcher of and is asked in for what is saved (SavedTensorScope).
  void BeginRun(const RunMode& mode) {
    mode_ = mode;
    recording_.reset();  // One before it may have failed in the middle.
  }
  void Before(std::size_t step, const Tensors& values) override;
  void After(std::size_t step, const Tensors& values) override;
  [[nodiscard]] std::unique_ptr<torch::autograd::SavedVariableHooks> KeeperOfNext() override;

 private:
  class Saved;
  class Catcher;
  // Of a tensor that is saved: the step that saves it, and the how manieth of its tensors it is.
  using Place = std::pair<std::size_t, std::size_t>;

  struct Held {
    at::Tensor tensor;  // Outside of autograd's graph, which holds the recording.
    bool differentiable = false;

    static Held Of(const at::Tensor& value) {
      return {.tensor = value.detach(), .differentiable = value.requires_grad()};
    }
  };

  // One segment of one run, as long as a gradient may need something of it.
  struct Recording {
    const SegmentScript* script = nullptr;
    RunMode mode;
    std::map<int, Held> held;                    // By slot: what it is computed again from.
    std::map<std::size_t, at::Tensor> drawn_by;  // The state of the random numbers before a step that draws.
    std::map<Place, Saved*> absent;              // What is not held; each takes itself out when it goes.
  };

  void Pack(Saved& saved, const at::Tensor& tensor);
  // The slot that the step reads it from; -1: from none.
  [[nodiscard]] int SlotOf(const at::Tensor& tensor) const;
  // Holds what will be held in any case: what the next segment begins with.
  void TakeExits(const Tensors& values);
  // Brings what is absent in the part of that step.
  void Recompute(Recording& recording, std::size_t step);
  void RepeatStep(Recording& recording, std::size_t step, Tensors& values);

  // Constant after construction.
  const Program& program_;
  ReplayListener& listener_;
  const std::vector<std::size_t> makers_;
  std::vector<SegmentScript> scripts_;
  std::vector<const SegmentScript*> script_of_;  // By step; null: everything is held.

  // Of the run that is under way.
  RunMode mode_;
  std::shared_ptr<Recording> recording_;  // With what autograd has of it.
  std::size_t step_ = 0;
  std::size_t saved_ = 0;                                        // Tensors of the step so far.
  std::vector<std::pair<int, const c10::StorageImpl*>> inputs_;  // Of the step: their slots, and where they lie.
};

}  // namespace tandem::training
