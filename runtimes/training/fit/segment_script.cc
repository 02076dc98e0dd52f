#include "runtimes/training/fit/segment_script.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

namespace tandem::training {
namespace {

// What takes far longer to compute than to read.
bool IsCostly(std::string_view kind) {
  static constexpr std::array<std::string_view, 11> kCostly{"Conv", "ConvTranspose", "Dense", "Einsum", "Gemm", "GRU",
                                                            "LSTM", "MatMul",        "RNN",   "STFT",   "DFT"};
  return std::ranges::contains(kCostly, kind);
}

std::size_t SlotCount(std::span<const ProgramStep> steps) {
  int last = -1;
  for (const ProgramStep& step : steps) {
    for (const auto* slots : {&step.inputs, &step.outputs}) {
      for (const int slot : *slots) last = std::max(last, slot);
    }
  }
  return static_cast<std::size_t>(last + 1);
}

}  // namespace

std::vector<std::size_t> MakersOf(std::span<const ProgramStep> steps) {
  std::vector<std::size_t> makers(SlotCount(steps), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const int slot : steps[i].outputs) {
      if (slot >= 0) makers[static_cast<std::size_t>(slot)] = i;
    }
  }
  return makers;
}

std::vector<std::size_t> CutPoints(std::span<const ProgramStep> steps) {
  const std::vector<std::size_t> makers = MakersOf(steps);
  // How many values are on their way before a step that a later one changes.
  std::vector<int> begun(steps.size() + 1);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].in_place) continue;
    const std::size_t maker = makers[static_cast<std::size_t>(steps[i].inputs[0])];
    if (maker >= i) continue;
    ++begun[maker + 1];
    --begun[i + 1];
  }
  std::vector<std::size_t> cuts;
  int on_their_way = 0;
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    on_their_way += begun[i];
    if (on_their_way == 0) cuts.push_back(i);
  }
  return cuts;
}

SegmentScript::SegmentScript(const FitSegment& segment, std::span<const ProgramStep> steps,
                             std::span<const std::size_t> makers)
    : segment_(segment), repeated_(segment.end - segment.begin), holds_(segment.end - segment.begin) {
  const auto maker_of = [&](int slot) { return makers[static_cast<std::size_t>(slot)]; };
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    const ProgramStep& step = steps[i];
    bool repeated = step.repeatable && segment.retention != Retention::kAll;
    if (segment.retention == Retention::kCostly && IsCostly(step.op.kind)) repeated = false;
    // What is held may not be changed a second time.
    if (step.in_place && Contains(maker_of(step.inputs[0]))) repeated &= IsRepeated(maker_of(step.inputs[0]));
    repeated_[i - segment.begin] = repeated;
  }
  std::set<int> seen;
  std::set<int> gone;
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    gone.insert(steps[i].last_uses.begin(), steps[i].last_uses.end());
    if (!IsRepeated(i)) continue;
    for (const int slot : steps[i].inputs) {
      if (slot < 0 || !seen.insert(slot).second) continue;
      const std::size_t maker = maker_of(slot);
      if (!Contains(maker)) {
        entries_.push_back(slot);
      } else if (!IsRepeated(maker)) {
        holds_[maker - segment.begin].push_back(slot);
      }
    }
  }
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    std::ranges::copy_if(steps[i].outputs, std::back_inserter(exits_),
                         [&](int slot) { return slot >= 0 && !gone.contains(slot); });
  }
}

SegmentScript::Range SegmentScript::PartOf(std::size_t step) const {
  const auto after = std::ranges::upper_bound(segment_.parts, step);
  return {.begin = after == segment_.parts.begin() ? segment_.begin : *(after - 1),
          .end = after == segment_.parts.end() ? segment_.end : *after};
}

}  // namespace tandem::training
