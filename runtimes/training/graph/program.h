#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/op_gate.h"
#include "api/base/result.h"
#include "runtimes/training/ops/kernel.h"
#include "runtimes/training/ops/op_table.h"

namespace tandem::training {

// An input of the graph that is no weight.
struct ProgramInput {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::optional<std::vector<std::int64_t>> shape;  // -1 where a dimension is free; nullopt: not even the rank is known.
};

// What the graph computes with and does not compute from its inputs.
struct Weight {
  at::Tensor tensor;
  // By its place: a floating-point weight, no running statistic, no weight of classes and no number in a formula.
  bool trainable = false;
  bool statistic = false;  // A mean or a variance of batch normalisation.
  bool shared = false;     // Read in several places.
};

// A node made ready. Values stand in slots.
struct ProgramStep {
  Kernel kernel;
  OpInfo op;
  std::vector<int> inputs;     // Slots; -1 for what is left out.
  std::vector<int> outputs;    // The same.
  std::vector<int> last_uses;  // Slots that nobody reads afterwards.
  bool in_place = false;       // Its output is its first input, changed.
  bool random = false;         // Draws from the run's source, and whoever sets that back has the same once more.
  bool repeatable = true;      // With the same inputs and the same random numbers it computes the same once more.
};

// Is told of the nodes of a run as they are computed, on its thread.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  // `values` are by slots, as they are then: what nobody reads any more is gone.
  virtual void Before(std::size_t step, const Tensors& values) = 0;
  virtual void After(std::size_t step, const Tensors& values) = 0;
};

// An ONNX graph made ready to be run by ATen, under autograd: nodes in order with their kernels, values in slots that
// are emptied after their last use, and whatever depends on constants alone already computed. Made and used by one
// thread.
class Program {
 public:
  // Computes the `wanted` values (any of the graph, not only its outputs) and no node more. kUnsupported and
  // kInvalidArgument name the node and what is wrong with it. `ops` outlives the program.
  [[nodiscard]] static Result<std::unique_ptr<Program>> Compile(const onnx::ModelProto& model,
                                                                const std::vector<std::string>& wanted,
                                                                const OpTable& ops);

  [[nodiscard]] const std::vector<ProgramInput>& inputs() const { return inputs_; }
  // By name. Tensors may be changed in place, or be made to require gradients, but not be exchanged.
  [[nodiscard]] const std::map<std::string, Weight>& weights() const { return weights_; }
  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  // Bytes of what every run begins with: weights, and what is constant.
  [[nodiscard]] std::uint64_t constant_bytes() const;
  // Takes the memory of its floating-point tensors away: they keep their shapes on ATen's device "meta", where nothing
  // is computed, but for numbers that a node reads to know what to do. Then it can be run for shapes alone, on feeds of
  // that device. Once, before a tensor is made to require gradients.
  void MakeHollow();
  // The nodes that a run computes, in their order.
  [[nodiscard]] std::vector<OpInfo> ops() const;

  // The wanted values. `feeds` are in the order of inputs(). The gate hears of nodes by their places in ops(), and so
  // does the watcher, if there is one. Errors name the node; kTooLarge when memory ran out.
  [[nodiscard]] Result<Tensors> Run(const RunMode& mode, std::span<const at::Tensor> feeds, OpGate& gate,
                                    RunWatcher* watcher = nullptr);

  // For whoever computes a part of a run once more: its steps, what their slots are filled with before the first, and
  // one step. What the step did is told in `work`, unless that is null.
  [[nodiscard]] std::span<const ProgramStep> steps() const { return steps_; }
  [[nodiscard]] Tensors Constants() const;
  [[nodiscard]] static Status RunStep(const ProgramStep& step, const RunMode& mode, Tensors& values, OpWork* work);

 private:
  friend class ProgramBuilder;

  Program() = default;

  std::vector<ProgramInput> inputs_;
  std::vector<int> input_slots_;
  std::map<std::string, Weight> weights_;
  std::vector<std::pair<int, at::Tensor>> constants_;  // What every run begins with; weights among them.
  std::vector<ProgramStep> steps_;
  std::vector<int> wanted_;
  int slots_ = 0;
  std::size_t described_ = 0;  // So many steps, from the first, have told what they do.
};

}  // namespace tandem::training
