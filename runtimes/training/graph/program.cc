#include "runtimes/training/graph/program.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>

#include <ATen/ATen.h>

#include "api/base/format.h"
#include "runtimes/training/graph/op_work.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/torch_error.h"

namespace tandem::training {
namespace {

std::string ShapeText(at::IntArrayRef sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i ? "," : "") + std::to_string(sizes[i]);
  return text + "]";
}

Status CheckFeed(const ProgramInput& input, const at::Tensor& feed) {
  if (feed.scalar_type() != input.type) {
    return Invalid("input '{}' is {}; the model takes {}", input.name, c10::toString(feed.scalar_type()),
                   c10::toString(input.type));
  }
  if (!input.shape) return {};
  bool fits = feed.dim() == static_cast<std::int64_t>(input.shape->size());
  for (std::int64_t d = 0; fits && d < feed.dim(); ++d) {
    const std::int64_t size = (*input.shape)[static_cast<std::size_t>(d)];
    fits = size < 0 || size == feed.size(d);
  }
  if (fits) return {};
  return Invalid("input '{}' has shape {}; the model takes {}", input.name, ShapeText(feed.sizes()),
                 ShapeText(*input.shape));
}

// For messages: "Conv node 'conv1'".
std::string Label(const OpInfo& op) {
  return Format("{} node '{}'", op.kind, op.name);
}

// Inputs that say what a node does, and are no numbers that it computes with.
bool IsSetting(std::string_view kind, std::size_t input) {
  struct Settings {
    std::string_view kind;
    std::size_t first;
  };
  static constexpr Settings kSettings[] = {{"CenterCropPad", 1}, {"Clip", 1},    {"Dropout", 1}, {"MelWeightMatrix", 0},
                                           {"OneHot", 1},        {"Pad", 1},     {"Pow", 1},     {"Range", 0},
                                           {"Resize", 1},        {"Upsample", 1}};
  return std::ranges::any_of(kSettings, [&](const Settings& each) { return each.kind == kind && input >= each.first; });
}

}  // namespace

void Program::MakeHollow() {
  constexpr std::int64_t kMostSettings = 64;  // Numbers.
  std::set<int> settings;
  for (const ProgramStep& step : steps_) {
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (IsSetting(step.op.kind, i)) settings.insert(step.inputs[i]);
    }
  }
  std::map<const at::TensorImpl*, at::Tensor> hollow;
  for (auto& [slot, tensor] : constants_) {
    // A single number is of no device.
    const bool stays = tensor.dim() == 0 || (settings.contains(slot) && tensor.numel() <= kMostSettings);
    if (stays || !tensor.is_floating_point()) continue;
    at::Tensor& place = hollow[tensor.unsafeGetTensorImpl()];
    if (!place.defined()) place = at::empty_like(tensor, tensor.options().device(at::kMeta));
  }
  const auto exchange = [&](at::Tensor& tensor) {
    if (const auto found = hollow.find(tensor.unsafeGetTensorImpl()); found != hollow.end()) tensor = found->second;
  };
  // The map knows tensors by their addresses: none may go before all are exchanged.
  const auto kept = constants_;
  for (auto& [slot, tensor] : constants_) exchange(tensor);
  for (auto& [name, weight] : weights_) exchange(weight.tensor);
}

std::uint64_t Program::constant_bytes() const {
  std::map<const c10::StorageImpl*, std::uint64_t> storages;
  for (const auto& [slot, tensor] : constants_) {
    storages[tensor.storage().unsafeGetStorageImpl()] = tensor.storage().nbytes();
  }
  std::uint64_t bytes = 0;
  for (const auto& [storage, size] : storages) bytes += size;
  return bytes;
}

std::vector<OpInfo> Program::ops() const {
  std::vector<OpInfo> ops;
  for (const ProgramStep& step : steps_) ops.push_back(step.op);
  return ops;
}

Status Program::RunStep(const ProgramStep& step, const RunMode& mode, Tensors& values, OpWork* work) {
  Tensors in;
  in.reserve(step.inputs.size());
  for (const int slot : step.inputs) in.push_back(slot < 0 ? at::Tensor() : values[static_cast<std::size_t>(slot)]);
  Tensors out;
  try {
    out = step.kernel(mode, in);
  } catch (const c10::Error& error) {
    return std::unexpected(TorchError(Label(step.op), error));
  } catch (const UnsupportedError& error) {
    return Fail(ErrorCode::kUnsupported, "{}: {}", Label(step.op), error.what());
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory(Label(step.op)));
  } catch (const std::exception& error) {
    return Invalid("{}: {}", Label(step.op), error.what());
  }
  if (work != nullptr) *work = WorkOf(step.op.kind, in, out);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    if (i >= out.size() || !out[i].defined())
      return Fail(ErrorCode::kUnsupported, "{}: output {} is not computed", Label(step.op), i);
    values[static_cast<std::size_t>(step.outputs[i])] = std::move(out[i]);
  }
  in.clear();
  for (const int slot : step.last_uses) values[static_cast<std::size_t>(slot)].reset();
  return {};
}

Tensors Program::Constants() const {
  Tensors values(static_cast<std::size_t>(slots_));
  for (const auto& [slot, tensor] : constants_) values[static_cast<std::size_t>(slot)] = tensor;
  return values;
}

Result<Tensors> Program::Run(const RunMode& mode, std::span<const at::Tensor> feeds, OpGate& gate,
                             RunWatcher* watcher) {
  if (feeds.size() != inputs_.size()) {
    return Invalid("{} inputs are given; the model takes {}", feeds.size(), inputs_.size());
  }
  Tensors values = Constants();
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    TANDEM_TRY(CheckFeed(inputs_[i], feeds[i]));
    values[static_cast<std::size_t>(input_slots_[i])] = feeds[i];
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    OpWork work;
    const bool is_new = i >= described_;
    gate.Begin(i);
    if (watcher != nullptr) watcher->Before(i, values);
    TANDEM_TRY(RunStep(steps_[i], mode, values, is_new ? &work : nullptr));
    if (watcher != nullptr) watcher->After(i, values);
    if (!is_new) continue;
    gate.Describe(i, work);
    described_ = i + 1;
  }
  gate.End();
  Tensors results;
  results.reserve(wanted_.size());
  for (const int slot : wanted_) results.push_back(values[static_cast<std::size_t>(slot)]);
  return results;
}

}  // namespace tandem::training
