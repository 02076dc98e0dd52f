#include "runtimes/training/fit/saved_tensors.h"

#include <utility>

#include <torch/csrc/autograd/engine.h>

namespace tandem::training {
namespace {

// Autograd asks for the process, and not for anybody in it.
thread_local SavedTensorKeeper* current = nullptr;

class AskingEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return current == nullptr ? nullptr : current->KeeperOfNext();
  }
};

torch::autograd::Engine& OnlyEngine() {
  // Never destroyed: gradients may be computed as long as there are threads.
  static AskingEngine* const engine = new AskingEngine();
  return *engine;
}

void Install() {
  static const bool installed = [] {
    torch::autograd::set_default_engine_stub(&OnlyEngine);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

SavedTensorScope::SavedTensorScope(SavedTensorKeeper& keeper) : before_(std::exchange(current, &keeper)) {
  Install();
}

SavedTensorScope::~SavedTensorScope() {
  current = before_;
}

}  // namespace tandem::training
