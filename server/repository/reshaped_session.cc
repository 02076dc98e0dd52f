#include "server/repository/reshaped_session.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::repository {
namespace {

// From one shape to another of as many elements. -1 on one side stands for the same size as the -1 in the same place
// among those of the other side.
struct Reshape {
  Shape from;
  Shape to;
};

using Reshapes = std::map<std::string, Reshape, std::less<>>;

// `shape` as the other side sees it; nothing when it is not one of those that the reshape is for.
std::optional<Shape> Convert(const Reshape& reshape, const Shape& shape) {
  const bool fits = std::ranges::equal(shape, reshape.from, [](std::int64_t given, std::int64_t expected) {
    return expected == -1 || given == expected;
  });
  if (!fits) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (reshape.from[i] == -1) sizes.push_back(shape[i]);
  }
  Shape converted = reshape.to;
  auto next = sizes.begin();
  for (std::int64_t& dim : converted) {
    if (dim == -1 && next != sizes.end()) dim = *next++;
  }
  return converted;
}

class ReshapedSession final : public InferenceSession {
 public:
  ReshapedSession(ModelSignature served, Reshapes inputs, Reshapes outputs, std::unique_ptr<InferenceSession> session)
      : signature_(std::move(served)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        session_(std::move(session)) {}

  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }

  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                CancelToken& cancel) override {
    std::vector<Tensor> reshaped(inputs.begin(), inputs.end());
    TANDEM_TRY(Apply(inputs_, "input", reshaped));
    TANDEM_ASSIGN(std::vector<Tensor> results, session_->Run(reshaped, outputs, cancel));
    TANDEM_TRY(Apply(outputs_, "output", results));
    return results;
  }

 private:
  static Status Apply(const Reshapes& reshapes, std::string_view kind, std::vector<Tensor>& tensors) {
    for (Tensor& tensor : tensors) {
      const auto found = reshapes.find(tensor.name);
      if (found == reshapes.end()) continue;
      std::optional<Shape> converted = Convert(found->second, tensor.shape);
      if (!converted) {
        return Invalid("{} '{}' has shape {}, which is not the {} that its reshape is for", kind, tensor.name,
                       ShapeText(tensor.shape), ShapeText(found->second.from));
      }
      tensor.shape = *std::move(converted);
    }
    return {};
  }

  // Constant after construction.
  const ModelSignature signature_;
  const Reshapes inputs_;   // From the client's shape to the graph's.
  const Reshapes outputs_;  // From the graph's shape to the client's.
  const std::unique_ptr<InferenceSession> session_;
};

template <typename Spec>
Reshapes Collect(const google::protobuf::RepeatedPtrField<Spec>& specs, bool batched) {
  Reshapes reshapes;
  for (const Spec& spec : specs) {
    if (!spec.has_reshape()) continue;
    Reshape reshape{{spec.dims().begin(), spec.dims().end()},
                    {spec.reshape().shape().begin(), spec.reshape().shape().end()}};
    if (batched) {
      reshape.from.insert(reshape.from.begin(), -1);
      reshape.to.insert(reshape.to.begin(), -1);
    }
    reshapes.emplace(spec.name(), std::move(reshape));
  }
  return reshapes;
}

}  // namespace

std::unique_ptr<InferenceSession> ApplyReshape(const inference::ModelConfig& config, ModelSignature served,
                                               std::unique_ptr<InferenceSession> session) {
  const bool batched = config.max_batch_size() > 0;
  Reshapes inputs = Collect(config.input(), batched);
  Reshapes outputs = Collect(config.output(), batched);
  if (inputs.empty() && outputs.empty()) return session;
  for (auto& [name, reshape] : outputs) std::swap(reshape.from, reshape.to);
  return std::make_unique<ReshapedSession>(std::move(served), std::move(inputs), std::move(outputs),
                                           std::move(session));
}

}  // namespace tandem::repository
