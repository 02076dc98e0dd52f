#include "server/profile/profile_inputs.h"

#include <algorithm>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem {
namespace {

const Tensor* Find(const repository::WarmupSample* sample, const std::string& name) {
  if (sample == nullptr) return nullptr;
  const auto found = std::ranges::find(sample->inputs, name, &Tensor::name);
  return found == sample->inputs.end() ? nullptr : &*found;
}

}  // namespace

Result<std::vector<Tensor>> ProfileInputs(const ModelSignature& signature, const BatchSettings& batching,
                                          const std::map<std::string, Shape>& shapes,
                                          const repository::WarmupSample* sample) {
  for (const auto& [name, shape] : shapes) {
    if (signature.FindInput(name) == nullptr) return Invalid("the model has no input '{}'", Excerpt(name));
  }
  std::vector<Tensor> inputs;
  std::string missing;
  for (const TensorSpec& spec : signature.inputs) {
    const auto given = shapes.find(spec.name);
    const Tensor* const sampled = Find(sample, spec.name);
    if (given == shapes.end() && sampled != nullptr) {
      inputs.push_back(*sampled);
      continue;
    }
    if (given == shapes.end() && spec.optional) continue;
    Shape shape = given == shapes.end() ? spec.shape : given->second;
    if (given == shapes.end()) {
      if (!shape.empty() && shape[0] == -1 && (batching.max_batch_size > 0 || signature.named_batch)) shape[0] = 1;
      if (std::ranges::contains(shape, -1)) {
        missing += Format("{}'{}' takes {}", missing.empty() ? "" : ", ", spec.name, ShapeText(spec.shape));
        continue;
      }
    }
    TANDEM_ASSIGN(Tensor tensor, repository::ZeroTensor(spec, std::move(shape)));
    inputs.push_back(std::move(tensor));
  }
  if (!missing.empty()) return Invalid("shapes are needed where dimensions vary: input {}", missing);
  return inputs;
}

}  // namespace tandem
