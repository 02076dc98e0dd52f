#include "runtimes/training/graph/program.h"

#include <new>

#include <ATen/ATen.h>

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

}  // namespace

Status Program::RunStep(const Step& step, const RunMode& mode, Tensors& values) const {
  Tensors in;
  in.reserve(step.inputs.size());
  for (const int slot : step.inputs) in.push_back(slot < 0 ? at::Tensor() : values[static_cast<std::size_t>(slot)]);
  Tensors out;
  try {
    out = step.kernel(mode, in);
  } catch (const c10::Error& error) {
    return std::unexpected(TorchError(step.label, error));
  } catch (const UnsupportedError& error) {
    return Fail(ErrorCode::kUnsupported, "{}: {}", step.label, error.what());
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory(step.label));
  } catch (const std::exception& error) {
    return Invalid("{}: {}", step.label, error.what());
  }
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    if (i >= out.size() || !out[i].defined())
      return Fail(ErrorCode::kUnsupported, "{}: output {} is not computed", step.label, i);
    values[static_cast<std::size_t>(step.outputs[i])] = std::move(out[i]);
  }
  in.clear();
  for (const int slot : step.last_uses) values[static_cast<std::size_t>(slot)].reset();
  return {};
}

Result<Tensors> Program::Run(const RunMode& mode, std::span<const at::Tensor> feeds, OpGate& gate) const {
  if (feeds.size() != inputs_.size()) {
    return Invalid("{} inputs are given; the model takes {}", feeds.size(), inputs_.size());
  }
  Tensors values(static_cast<std::size_t>(slots_));
  for (const auto& [slot, tensor] : constants_) values[static_cast<std::size_t>(slot)] = tensor;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    TANDEM_TRY(CheckFeed(inputs_[i], feeds[i]));
    values[static_cast<std::size_t>(input_slots_[i])] = feeds[i];
  }
  for (const Step& step : steps_) {
    gate.Pass();
    TANDEM_TRY(RunStep(step, mode, values));
  }
  Tensors results;
  results.reserve(wanted_.size());
  for (const int slot : wanted_) results.push_back(values[static_cast<std::size_t>(slot)]);
  return results;
}

}  // namespace tandem::training
