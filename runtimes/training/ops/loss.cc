// Losses that a graph may hold itself.

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

struct LossForm {
  std::int64_t reduction = at::Reduction::Mean;
  std::int64_t ignored = -100;  // ATen's word for none; no class has this number.
};

Result<LossForm> ReadLoss(NodeView& node) {
  LossForm form{.ignored = node.Int("ignore_index", -100)};
  const std::string reduction = node.Text("reduction", "mean");
  if (reduction == "none") {
    form.reduction = at::Reduction::None;
  } else if (reduction == "sum") {
    form.reduction = at::Reduction::Sum;
  } else if (reduction != "mean") {
    return Invalid("reduction is '{}'", reduction);
  }
  return form;
}

at::Tensor NegativeLogLikelihood(const LossForm& form, const at::Tensor& log_probabilities,
                                 std::span<const at::Tensor> in) {
  // Of classes; ATen refuses to learn them.
  const at::Tensor given = Optional(in, 2);
  const at::Tensor weight = given.defined() ? given.detach() : given;
  Require(log_probabilities.dim() >= 2, "the scores have {} dimensions and need two or more", log_probabilities.dim());
  Require(!weight.defined() || (weight.dim() == 1 && weight.size(0) == log_probabilities.size(1)),
          "there must be one weight for each class");
  return at::nll_loss_nd(log_probabilities, in[1].to(at::kLong), weight, form.reduction, form.ignored);
}

Result<Kernel> MakeNegativeLogLikelihoodLoss(NodeView& node) {
  TANDEM_ASSIGN(const LossForm form, ReadLoss(node));
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {NegativeLogLikelihood(form, in[0], in)};
  };
}

Result<Kernel> MakeSoftmaxCrossEntropyLoss(NodeView& node) {
  TANDEM_ASSIGN(const LossForm form, ReadLoss(node));
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    Require(in[0].dim() >= 2, "the scores have {} dimensions and need two or more", in[0].dim());
    const at::Tensor log_probabilities = at::log_softmax(in[0], 1);
    return {NegativeLogLikelihood(form, log_probabilities, in), log_probabilities};
  };
}

}  // namespace

void AddLossOps(OpTable& table) {
  table.Add("NegativeLogLikelihoodLoss", {2, 3}, MakeNegativeLogLikelihoodLoss);
  table.Add("SoftmaxCrossEntropyLoss", {2, 3, 2}, MakeSoftmaxCrossEntropyLoss);
}

}  // namespace tandem::training
