#include "runtimes/training/trainer/step_gate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/SequenceNumber.h>

namespace tandem::training {
namespace {

// A callback carries nothing of its own.
thread_local StepGate* current = nullptr;

std::vector<OpInfo> AllOf(std::vector<OpInfo> nodes, const std::string& update) {
  nodes.push_back({.kind = "loss", .name = ""});
  const std::size_t forward = nodes.size();
  for (std::size_t i = 0; i < forward; ++i) {
    nodes.push_back({.kind = nodes[i].kind + " gradient", .name = nodes[i].name});
  }
  nodes.push_back({.kind = "gradients kept", .name = ""});
  nodes.push_back({.kind = update, .name = ""});
  return nodes;
}

}  // namespace

StepGate::StepGate(std::vector<OpInfo> nodes, const std::string& update, OpGate& gate)
    : nodes_(nodes.size()), gate_(gate), first_sequence_(nodes.size() + 1) {
  gate_.Announce(AllOf(std::move(nodes), update));
}

void StepGate::Begin(std::size_t node) {
  first_sequence_[node] = at::sequence_number::peek();
  gate_.Begin(node);
}

void StepGate::Describe(std::size_t node, const OpWork& work) {
  gate_.Describe(node, work);
  // The gradients of both what it reads and what it is made of.
  gate_.Describe(forward() + node, {.flops = 2 * work.flops, .bytes = 2 * work.bytes});
}

void StepGate::BeginGradient(std::int64_t sequence) {
  const auto after = std::ranges::upper_bound(first_sequence_, static_cast<std::uint64_t>(sequence));
  const bool known = sequence >= 0 && after != first_sequence_.begin();
  const std::size_t of = static_cast<std::size_t>(after - first_sequence_.begin()) - 1;
  gradient_ = known ? forward() + of : 2 * forward();
  gate_.Begin(gradient_);
}

GradientScope::GradientScope(StepGate& gate) : gate_(gate) {
  current = &gate;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        current->BeginGradient(function.seqNr());
        return nullptr;
      }).scopes({at::RecordScope::BACKWARD_FUNCTION}));
}

GradientScope::~GradientScope() {
  at::removeCallback(handle_);
  current = nullptr;
  gate_.End();
}

}  // namespace tandem::training
