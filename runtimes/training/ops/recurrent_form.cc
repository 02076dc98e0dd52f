#include "runtimes/training/ops/recurrent_form.h"

#include <map>

#include <ATen/ATen.h>

namespace tandem::training {
namespace {

// With what alpha and beta are when a node does not say; ONNX gives the same numbers as for the operators.
struct KnownActivation {
  double alpha;
  double beta;
  at::Tensor (*function)(const at::Tensor& x, double alpha, double beta);
};

const std::map<std::string, KnownActivation>& KnownActivations() {
  using T = const at::Tensor&;
  static const std::map<std::string, KnownActivation> known{
      {"Tanh", {0, 0, [](T x, double, double) { return at::tanh(x); }}},
      {"Sigmoid", {0, 0, [](T x, double, double) { return at::sigmoid(x); }}},
      {"Relu", {0, 0, [](T x, double, double) { return at::relu(x); }}},
      {"Affine", {1, 0, [](T x, double a, double b) { return x.mul(a).add(b); }}},
      {"LeakyRelu", {0.01, 0, [](T x, double a, double) { return at::leaky_relu(x, a); }}},
      {"ThresholdedRelu", {1, 0, [](T x, double a, double) { return at::threshold(x, a, 0); }}},
      {"ScaledTanh", {1, 1, [](T x, double a, double b) { return x.mul(b).tanh().mul(a); }}},
      {"HardSigmoid", {0.2, 0.5, [](T x, double a, double b) { return x.mul(a).add(b).clamp(0, 1); }}},
      {"Elu", {1, 0, [](T x, double a, double) { return at::elu(x, a); }}},
      {"Softsign", {0, 0, [](T x, double, double) { return x.div(x.abs().add(1)); }}},
      {"Softplus", {0, 0, [](T x, double, double) { return at::softplus(x); }}},
  };
  return known;
}

// Alphas and betas stand for those activations only that have them, in their order.
bool HasAlpha(const std::string& name) {
  return name == "Affine" || name == "LeakyRelu" || name == "ThresholdedRelu" || name == "ScaledTanh" ||
         name == "HardSigmoid" || name == "Elu";
}

bool HasBeta(const std::string& name) {
  return name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid";
}

Status ReadActivations(NodeView& node, RecurrentForm& form) {
  const std::vector<std::string> standard =
      form.kind == RecurrentForm::Kind::kLstm  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
      : form.kind == RecurrentForm::Kind::kGru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                               : std::vector<std::string>{"Tanh"};
  form.names = node.Texts("activations");
  if (form.names.empty()) {
    for (std::size_t d = 0; d < form.directions; ++d) {
      form.names.insert(form.names.end(), standard.begin(), standard.end());
    }
  }
  if (form.names.size() != standard.size() * form.directions)
    return Invalid("{} activations are named", form.names.size());
  const auto alphas = node.Floats("activation_alpha");
  const auto betas = node.Floats("activation_beta");
  std::size_t alphas_used = 0;
  std::size_t betas_used = 0;
  for (const std::string& name : form.names) {
    const auto known = KnownActivations().find(name);
    if (known == KnownActivations().end())
      return Fail(ErrorCode::kUnsupported, "activation '{}' is not supported", name);
    double alpha = known->second.alpha;
    double beta = known->second.beta;
    if (HasAlpha(name) && alphas_used < alphas.size()) alpha = alphas[alphas_used++];
    if (HasBeta(name) && betas_used < betas.size()) beta = betas[betas_used++];
    form.activations.emplace_back(
        [function = known->second.function, alpha, beta](const at::Tensor& x) { return function(x, alpha, beta); });
  }
  return {};
}

}  // namespace

at::Tensor RecurrentForm::Clipped(const at::Tensor& x) const {
  return clip ? x.clamp(-*clip, *clip) : x;
}

Result<RecurrentForm> RecurrentForm::Read(NodeView& node, Kind kind) {
  RecurrentForm form{.kind = kind, .gates = kind == Kind::kLstm ? 4 : kind == Kind::kGru ? 3 : 1};
  if (!node.Has("hidden_size")) return Fail(ErrorCode::kUnsupported, "without hidden_size it is not supported");
  form.hidden = node.Int("hidden_size", 0);
  if (form.hidden < 1) return Invalid("hidden_size is {}", form.hidden);
  const std::string direction = node.Text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Invalid("direction is '{}'", direction);
  }
  form.directions = direction == "bidirectional" ? 2 : 1;
  form.backwards = direction == "reverse";
  form.batch_first = node.Int("layout", 0) != 0;
  if (node.Has("clip")) form.clip = node.Float("clip", 0);
  if (kind == Kind::kGru) form.linear_before_reset = node.Int("linear_before_reset", 0) != 0;
  if (kind == Kind::kLstm) form.input_forget = node.Int("input_forget", 0) != 0;
  TANDEM_TRY(ReadActivations(node, form));
  return form;
}

}  // namespace tandem::training
