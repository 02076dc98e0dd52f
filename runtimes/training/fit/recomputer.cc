#include "runtimes/training/fit/recomputer.h"

#include <algorithm>
#include <new>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/intrusive_ptr.h>

namespace tandem::training {
namespace {

// How a tensor lies in its storage.
struct Form {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  at::ScalarType type = at::kFloat;

  static Form Of(const at::Tensor& tensor) {
    return {.sizes = tensor.sizes().vec(),
            .strides = tensor.strides().vec(),
            .offset = tensor.storage_offset(),
            .type = tensor.scalar_type()};
  }
  // Another that lies where `tensor` does.
  [[nodiscard]] at::Tensor In(const at::Tensor& tensor) const {
    return tensor.detach().as_strided(sizes, strides, offset);
  }
  friend bool operator==(const Form&, const Form&) = default;
};

// Sets random numbers back to where they were.
class RandomState {
 public:
  explicit RandomState(const at::Generator& generator) : generator_(generator), before_(generator_.get_state()) {}
  ~RandomState() { generator_.set_state(before_); }
  RandomState(const RandomState&) = delete;
  RandomState& operator=(const RandomState&) = delete;

 private:
  at::Generator generator_;
  const at::Tensor before_;
};

at::Generator SourceOf(const RunMode& mode) {
  return mode.random.defined() ? mode.random : at::globalContext().defaultGenerator(at::kCPU);
}

}  // namespace

// What stands in autograd's graph in place of a tensor.
class Recomputer::Saved final : public torch::autograd::SavedVariableHooks {
 public:
  Saved(Recomputer& recomputer, std::shared_ptr<Recording> recording)
      : recomputer_(recomputer), recording_(std::move(recording)) {}
  ~Saved() override {
    if (recording_ && place_) recording_->absent.erase(*place_);
  }
  Saved(const Saved&) = delete;
  Saved& operator=(const Saved&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override { recomputer_.Pack(*this, tensor); }
  at::Tensor call_unpack_hook() override {
    if (!tensor_.defined()) {
      recomputer_.Recompute(*recording_, place_->first);
      TORCH_CHECK(tensor_.defined(), "what was saved for a gradient has not come back when it was computed again");
    }
    return tensor_;
  }

  // Holds it itself from now on, and is no longer part of the recording.
  void Hold(const at::Tensor& tensor) {
    tensor_ = tensor;
    recording_.reset();
  }
  // Is absent: found by its place, and where it is read from a slot by that.
  void LeaveOut(Place place, int slot, const at::Tensor& tensor) {
    place_ = place;
    slot_ = slot;
    form_ = Form::Of(tensor);
    storage_ = tensor.storage().getWeakStorageImpl();
    recording_->absent.emplace(place, this);
  }
  void Bring(const at::Tensor& tensor) {
    TORCH_CHECK(Form::Of(tensor).sizes == form_.sizes && tensor.scalar_type() == form_.type,
                "what is computed again has another shape or type than it had");
    tensor_ = tensor.detach();
  }
  // If it lies where `value` does.
  void BringFrom(const at::Tensor& value) {
    if (!storage_ || value.scalar_type() != form_.type) return;
    const auto storage = storage_->lock();
    if (storage && storage.get() == value.storage().unsafeGetStorageImpl()) tensor_ = form_.In(value);
  }
  void BringAsRead(const Tensors& values) {
    if (slot_ >= 0) tensor_ = form_.In(values[static_cast<std::size_t>(slot_)]);
  }
  [[nodiscard]] bool here() const { return tensor_.defined(); }

 private:
  Recomputer& recomputer_;
  std::shared_ptr<Recording> recording_;  // Shared by all that is absent of it. Null: the tensor is held.
  std::optional<Place> place_;            // Null until it is left out.
  int slot_ = -1;
  Form form_;
  // Knows a storage for the same one, and holds none of its memory.
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage_;
  at::Tensor tensor_;
};

// Gets what autograd saves while steps are computed again, which no gradient will ask for, and gives what is absent
// there to those who wait for it.
class Recomputer::Catcher final : public SavedTensorKeeper {
 public:
  Catcher(Recording& recording, SegmentScript::Range part) : recording_(recording), part_(part) {}

  void Begin(std::size_t step) {
    step_ = step;
    saved_ = 0;
  }
  [[nodiscard]] std::unique_ptr<torch::autograd::SavedVariableHooks> KeeperOfNext() override {
    return std::make_unique<Passing>(*this);
  }

 private:
  class Passing final : public torch::autograd::SavedVariableHooks {
   public:
    explicit Passing(Catcher& catcher) : catcher_(catcher) {}
    void call_pack_hook(const at::Tensor& tensor) override { catcher_.Take(tensor); }
    at::Tensor call_unpack_hook() override {
      TORCH_CHECK(false, "the gradient of what was computed again is asked for");
    }

   private:
    Catcher& catcher_;
  };

  void Take(const at::Tensor& tensor) {
    const Place place(step_, saved_++);
    if (step_ < part_.begin) return;
    const auto found = recording_.absent.find(place);
    if (found != recording_.absent.end() && !found->second->here()) found->second->Bring(tensor);
  }

  Recording& recording_;
  const SegmentScript::Range part_;
  std::size_t step_ = 0;
  std::size_t saved_ = 0;
};

Recomputer::Recomputer(const Program& program, const FitPlan& plan, ReplayListener& listener)
    : program_(program), listener_(listener), makers_(MakersOf(program.steps())), script_of_(program.steps().size()) {
  scripts_.reserve(plan.segments.size());
  for (const FitSegment& segment : plan.segments) {
    if (segment.retention == Retention::kAll) continue;
    scripts_.emplace_back(segment, program.steps(), makers_);
    for (std::size_t i = segment.begin; i < segment.end; ++i) script_of_[i] = &scripts_.back();
  }
}

void Recomputer::Before(std::size_t step, const Tensors& values) {
  const SegmentScript* const script = script_of_[step];
  if (script == nullptr) {
    recording_.reset();
    return;
  }
  step_ = step;
  saved_ = 0;
  if (step == script->segment().begin) {
    recording_ = std::make_shared<Recording>();
    recording_->script = script;
    recording_->mode = mode_;
    recording_->mode.again = true;
    for (const int slot : script->entries()) recording_->held[slot] = Held::Of(values[static_cast<std::size_t>(slot)]);
  }
  inputs_.clear();
  for (const int slot : program_.steps()[step].inputs) {
    if (slot < 0) continue;
    const at::Tensor& value = values[static_cast<std::size_t>(slot)];
    if (value.has_storage()) inputs_.emplace_back(slot, value.storage().unsafeGetStorageImpl());
  }
  if (program_.steps()[step].random && script->IsRepeated(step)) {
    recording_->drawn_by[step] = SourceOf(mode_).get_state();
  }
}

void Recomputer::After(std::size_t step, const Tensors& values) {
  if (!recording_) return;
  const SegmentScript& script = *recording_->script;
  for (const int slot : script.holds(step)) recording_->held[slot] = Held::Of(values[static_cast<std::size_t>(slot)]);
  if (step + 1 < script.segment().end) return;
  TakeExits(values);
  recording_.reset();
}

std::unique_ptr<torch::autograd::SavedVariableHooks> Recomputer::KeeperOfNext() {
  if (!recording_) return nullptr;
  return std::make_unique<Saved>(*this, recording_);
}

int Recomputer::SlotOf(const at::Tensor& tensor) const {
  const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const auto found = std::ranges::find(inputs_, storage, &std::pair<int, const c10::StorageImpl*>::second);
  return found == inputs_.end() ? -1 : found->first;
}

void Recomputer::Pack(Saved& saved, const at::Tensor& tensor) {
  const Place place(step_, saved_++);
  const SegmentScript& script = *recording_->script;
  const auto is_absent = [&](int slot) {
    if (slot < 0) return script.IsRepeated(step_);
    const std::size_t maker = makers_[static_cast<std::size_t>(slot)];
    return script.Contains(maker) && script.IsRepeated(maker);
  };
  const int slot = tensor.has_storage() ? SlotOf(tensor) : -1;
  if (!tensor.has_storage() || !is_absent(slot)) {
    saved.Hold(tensor.detach());
  } else {
    saved.LeaveOut(place, script.IsRepeated(step_) ? -1 : slot, tensor);
  }
}

void Recomputer::TakeExits(const Tensors& values) {
  const at::NoGradGuard no_gradients;
  for (const int slot : recording_->script->exits()) {
    const at::Tensor& value = values[static_cast<std::size_t>(slot)];
    if (!value.defined() || !value.has_storage()) continue;
    for (const auto& [place, saved] : recording_->absent) saved->BringFrom(value);
  }
}

void Recomputer::RepeatStep(Recording& recording, std::size_t step, Tensors& values) {
  const ProgramStep& what = program_.steps()[step];
  listener_.BeginAgain(step);
  if (what.random) {
    at::Generator source = SourceOf(recording.mode);
    source.set_state(recording.drawn_by.at(step));
  }
  const Status done = Program::RunStep(what, recording.mode, values, nullptr);
  if (done) return;
  // Autograd passes on what is thrown, and nothing else.
  if (done.error().code == ErrorCode::kTooLarge) throw std::bad_alloc();
  TORCH_CHECK(false, done.error().message);
}

void Recomputer::Recompute(Recording& recording, std::size_t step) {
  const SegmentScript& script = *recording.script;
  const SegmentScript::Range part = script.PartOf(step);
  std::size_t end = part.begin;
  for (const auto& [place, saved] : recording.absent) {
    if (place.first >= part.begin && place.first < part.end && !saved->here()) end = place.first + 1;
  }
  Tensors values = program_.Constants();
  for (const auto& [slot, held] : recording.held) {
    at::Tensor value = held.tensor.detach();
    if (held.differentiable) value.set_requires_grad(true);
    values[static_cast<std::size_t>(slot)] = std::move(value);
  }
  std::optional<RandomState> random;
  if (!recording.drawn_by.empty()) random.emplace(SourceOf(recording.mode));
  const at::AutoGradMode with_gradients(true);
  Catcher catcher(recording, part);
  const SavedTensorScope scope(catcher);
  for (std::size_t i = script.segment().begin; i < end; ++i) {
    if (script.IsRepeated(i)) {
      catcher.Begin(i);
      RepeatStep(recording, i, values);
      continue;
    }
    if (i >= part.begin) {
      const at::NoGradGuard no_gradients;
      for (auto each = recording.absent.lower_bound(Place(i, 0));
           each != recording.absent.end() && each->first.first == i; ++each) {
        if (!each->second->here()) each->second->BringAsRead(values);
      }
    }
    for (const int slot : program_.steps()[i].last_uses) values[static_cast<std::size_t>(slot)].reset();
  }
  listener_.EndAgain();
}

}  // namespace tandem::training
