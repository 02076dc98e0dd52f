#include "runtimes/training/estimate/step_trace.h"

#include <algorithm>

#include "api/base/format.h"

namespace tandem::training {

void StepTrace::Close() {
  if (!marks_.empty()) marks_.back().peak = std::max(marks_.back().peak, ledger_.peak());
  ledger_.ForgetPeak();
}

void StepTrace::Begin(std::size_t op) {
  Close();
  marks_.push_back({.op = op, .live = ledger_.live(), .peak = ledger_.live()});
}

void StepTrace::Clear() {
  marks_.clear();
  ledger_.ForgetPeak();
}

std::span<const StepTrace::Mark> StepTrace::Marks() {
  Close();
  return marks_;
}

std::optional<StepTrace::Mark> StepTrace::Highest() {
  Close();
  const auto highest = std::ranges::max_element(marks_, {}, &Mark::peak);
  return highest == marks_.end() ? std::nullopt : std::optional(*highest);
}

OpWork StepTrace::WorkOf(std::size_t op) const {
  const auto found = work_.find(op);
  return found == work_.end() ? OpWork{} : found->second;
}

std::string StepTrace::NameOf(std::size_t op) const {
  if (op >= ops_.size()) return "";
  return ops_[op].name.empty() ? ops_[op].kind : Format("{} '{}'", ops_[op].kind, ops_[op].name);
}

}  // namespace tandem::training
