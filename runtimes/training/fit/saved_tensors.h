#pragma once

#include <memory>

#include <torch/csrc/autograd/saved_variable_hooks.h>

namespace tandem::training {

// Is asked by autograd for every tensor that it saves for a gradient. Autograd asks by the means that PyTorch has for
// programs in Python (saved-tensor hooks), which the library in C++ has a place for and nothing in it.
class SavedTensorKeeper {
 public:
  virtual ~SavedTensorKeeper() = default;
  // Who keeps the next tensor: call_pack_hook() gets it, call_unpack_hook() gives it back, and it is destroyed when the
  // gradient needs it no more. Null: autograd holds it as ever.
  [[nodiscard]] virtual std::unique_ptr<torch::autograd::SavedVariableHooks> KeeperOfNext() = 0;
};

// As long as it lives the keeper is asked on this thread, in place of the one before it.
class SavedTensorScope {
 public:
  // Borrows the keeper.
  explicit SavedTensorScope(SavedTensorKeeper& keeper);
  ~SavedTensorScope();
  SavedTensorScope(const SavedTensorScope&) = delete;
  SavedTensorScope& operator=(const SavedTensorScope&) = delete;

 private:
  SavedTensorKeeper* const before_;
};

}  // namespace tandem::training
