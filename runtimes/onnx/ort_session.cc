#include "runtimes/onnx/ort_session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "api/base/format.h"
#include "runtimes/onnx/integer_division.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

// Smaller outputs cost more to bind than to let ONNX Runtime allocate; larger ones count against the bound of runs.
constexpr std::int64_t kMinPlannedBytes = 64;
constexpr std::int64_t kMaxPlannedBytes = 256 << 20;

constexpr std::size_t kMaxIdleSlots = 16;

// The first input whose dimension 0 is promised, or may be guessed, to be the output's. -1: none.
int FindBatchInput(const SessionSignature& signature, std::size_t output) {
  const auto& inputs = signature.signature.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].shape.empty() && inputs[i].shape[0] == -1 && !inputs[i].optional &&
        signature.input_batch_names[i] == signature.output_batch_names[output]) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::uint64_t InputBytes(std::span<const Tensor> inputs) {
  std::uint64_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.data.size();
  return bytes;
}

}  // namespace

OnnxSession::OnnxSession(std::shared_ptr<const OrtEnvironment> environment, const SessionSpec& spec, LoadedModel loaded,
                         OrtPtr<OrtMemoryInfo> cpu, const SessionSignature& signature)
    : environment_(std::move(environment)),
      name_(spec.name),
      run_bytes_(spec.run_bytes),
      loaded_(std::move(loaded)),
      results_keep_(std::make_shared<
                    const std::pair<std::shared_ptr<const OrtEnvironment>, std::shared_ptr<const PreparedModel>>>(
          environment_, loaded_.prepared)),
      cpu_(std::move(cpu)),
      signature_(signature.signature),
      plans_(signature_.outputs.size()) {
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const TensorSpec& spec = signature_.outputs[i];
    // ONNX Runtime reports an unknown rank as rank 0.
    if (spec.type == DataType::kBytes || spec.shape.empty()) continue;
    const auto variable = std::ranges::count(spec.shape, -1);
    if (spec.shape[0] == -1) plans_[i].batch_input = FindBatchInput(signature, i);
    plans_[i].known = variable == 0 || (variable == 1 && plans_[i].batch_input >= 0);
  }
}

Result<std::unique_ptr<InferenceSession>> OnnxSession::Load(std::shared_ptr<const OrtEnvironment> environment,
                                                            const SessionSpec& spec) {
  const OrtApi& api = environment->api();
  auto loaded = LoadModel(*environment, spec);
  if (!loaded) {
    Error error = std::move(loaded).error();
    const std::string prefix = Format("model '{}'", spec.name);
    if (!error.message.starts_with(prefix)) error.message = prefix + ": " + error.message;
    return std::unexpected(std::move(error));
  }
  TANDEM_ASSIGN(SessionSignature signature, ReadSignature(api, loaded->session.get(), spec));
  signature.signature.may_be_empty = loaded->file.elementwise;
  for (TensorSpec& input : signature.signature.inputs) {
    input.unranked = loaded->file.unranked_inputs.contains(input.name);
  }
  OrtMemoryInfo* raw = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw), "memory kind"));
  OrtPtr<OrtMemoryInfo> cpu(raw, {api.ReleaseMemoryInfo});
  return std::unique_ptr<InferenceSession>(
      new OnnxSession(std::move(environment), spec, *std::move(loaded), std::move(cpu), signature));
}

Result<std::vector<Tensor>> OnnxSession::Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                             CancelToken& cancel) {
  try {
    if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "the request for model '{}' was cancelled", name_);
    TANDEM_ASSIGN(auto slot, TakeSlot());
    const IntegerDivisionWatch divisions;
    RunMemory::Turn turn(*environment_->run_memory());
    auto result = RunInSlot(*slot, inputs, outputs, cancel);
    if (const Status divided = divisions.Check(name_); !divided) result = std::unexpected(divided.error());
    ReturnSlot(std::move(slot));
    const std::uint64_t taken = turn.End();
    if (run_bytes_ != nullptr) run_bytes_->Observe(InputBytes(inputs), taken);
    if (!result && result.error().code == ErrorCode::kTooLarge) environment_->run_memory()->Trim();
    return result;
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "model '{}': not enough memory for the given inputs", name_);
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "model '{}': {}", name_, Readable(e.what(), 200));
  }
}

Result<std::vector<Tensor>> OnnxSession::RunInSlot(RunSlot& slot, std::span<const Tensor> inputs,
                                                   std::span<const std::string> outputs, CancelToken& cancel) {
  std::vector<const Tensor*> by_index(signature_.inputs.size());
  TANDEM_TRY(BindInputs(slot, inputs, by_index));
  TANDEM_TRY(BindOutputs(slot, outputs, by_index, true));
  auto failure = Execute(slot, cancel);

  const auto untouched = [&] {
    for (std::size_t i = 0; i < slot.output_count(); ++i) {
      if (slot.Untouched(i)) return true;
    }
    return false;
  };
  if (failure ? IsOutputShapeMismatch(*failure) : untouched()) {
    std::vector<std::optional<Shape>> planned(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) planned[i] = slot.PlannedShape(i);
    slot.ClearOutputs();
    TANDEM_TRY(BindOutputs(slot, outputs, by_index, false));
    const bool was_untouched = !failure;
    failure = Execute(slot, cancel);
    if (!failure) DropWrongPlans(outputs, planned, was_untouched, slot);
  }
  if (failure) {
    if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "the request for model '{}' was cancelled", name_);
    return std::unexpected(RunError(*failure, name_));
  }
  std::vector<Tensor> tensors;
  tensors.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    TANDEM_ASSIGN(Tensor tensor, slot.TakeOutput(i, outputs[i], signature_.FindOutput(outputs[i])->type));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status OnnxSession::BindInputs(RunSlot& slot, std::span<const Tensor> inputs,
                               std::vector<const Tensor*>& by_index) const {
  for (const Tensor& tensor : inputs) {
    const TensorSpec* const spec = signature_.FindInput(tensor.name);
    if (spec == nullptr) return Invalid("model '{}' has no input '{}'", name_, Readable(tensor.name, 100));
    const Tensor*& place = by_index[static_cast<std::size_t>(spec - signature_.inputs.data())];
    if (place != nullptr) return Invalid("model '{}': input '{}' is given twice", name_, spec->name);
    place = &tensor;
    TANDEM_TRY(slot.AddInput(spec->name.c_str(), tensor));
  }
  for (std::size_t i = 0; i < by_index.size(); ++i) {
    if (by_index[i] == nullptr && !signature_.inputs[i].optional) {
      return Invalid("model '{}': input '{}' is missing", name_, signature_.inputs[i].name);
    }
  }
  return {};
}

Status OnnxSession::BindOutputs(RunSlot& slot, std::span<const std::string> outputs,
                                const std::vector<const Tensor*>& inputs, bool use_plans) const {
  if (outputs.empty()) return Invalid("model '{}': no output is asked for", name_);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorSpec* const spec = signature_.FindOutput(outputs[i]);
    if (spec == nullptr) return Invalid("model '{}' has no output '{}'", name_, Readable(outputs[i], 100));
    if (std::ranges::contains(outputs.first(i), outputs[i])) {
      return Invalid("model '{}': output '{}' is asked for twice", name_, spec->name);
    }
    const auto index = static_cast<std::size_t>(spec - signature_.outputs.data());
    Shape shape = use_plans ? PlannedShape(index, inputs) : Shape{};
    if (shape.empty()) {
      slot.AddOutput(spec->name.c_str());
    } else {
      TANDEM_TRY(slot.AddOutput(spec->name.c_str(), spec->type, std::move(shape)));
    }
  }
  return {};
}

Shape OnnxSession::PlannedShape(std::size_t output, const std::vector<const Tensor*>& inputs) const {
  const OutputPlan& plan = plans_[output];
  if (!plan.known.load(std::memory_order_relaxed)) return {};
  const TensorSpec& spec = signature_.outputs[output];
  Shape shape = spec.shape;
  if (plan.batch_input >= 0) {
    const Tensor* const input = inputs[static_cast<std::size_t>(plan.batch_input)];
    if (input->shape.empty()) return {};
    shape[0] = input->shape[0];
  }
  const auto bytes = ByteSize(spec.type, shape);
  if (!bytes || *bytes < kMinPlannedBytes || *bytes > kMaxPlannedBytes) return {};
  return shape;
}

std::optional<OrtFailure> OnnxSession::Execute(RunSlot& slot, CancelToken& cancel) {
  const OrtApi& api = environment_->api();
  // A failure to set the flag leaves the run to its end, which is all that cancelling promises.
  const auto registration = cancel.OnCancel(
      [&api, options = slot.options()] { static_cast<void>(TakeFailure(api, api.RunOptionsSetTerminate(options))); });
  return slot.Run(loaded_.session.get());
}

void OnnxSession::DropWrongPlans(std::span<const std::string> outputs, const std::vector<std::optional<Shape>>& planned,
                                 bool all, const RunSlot& slot) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!planned[i]) continue;
    const auto actual = slot.OutputShape(i);
    if (!all && actual && *actual == *planned[i]) continue;
    const TensorSpec* const spec = signature_.FindOutput(outputs[i]);
    plans_[static_cast<std::size_t>(spec - signature_.outputs.data())].known.store(false, std::memory_order_relaxed);
  }
}

Result<std::unique_ptr<RunSlot>> OnnxSession::TakeSlot() {
  {
    MutexLock lock(mu_);
    if (!idle_slots_.empty()) {
      std::unique_ptr<RunSlot> slot = std::move(idle_slots_.back());
      idle_slots_.pop_back();
      return slot;
    }
  }
  const OrtApi& api = environment_->api();
  OrtRunOptions* raw = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateRunOptions(&raw), "run options"));
  OrtPtr<OrtRunOptions> options(raw, {api.ReleaseRunOptions});
  // A failing run is reported to its caller; in the log it would let clients fill the disk.
  TANDEM_TRY(CheckOrt(api, api.RunOptionsSetRunLogSeverityLevel(raw, ORT_LOGGING_LEVEL_FATAL), "run options"));
  return std::make_unique<RunSlot>(api, cpu_.get(), std::move(options), results_keep_);
}

void OnnxSession::ReturnSlot(std::unique_ptr<RunSlot> slot) {
  slot->Clear();
  const OrtApi& api = environment_->api();
  if (TakeFailure(api, api.RunOptionsUnsetTerminate(slot->options()))) return;
  MutexLock lock(mu_);
  if (idle_slots_.size() < kMaxIdleSlots) idle_slots_.push_back(std::move(slot));
}

}  // namespace tandem
