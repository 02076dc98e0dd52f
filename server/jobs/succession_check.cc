#include "server/jobs/succession_check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "api/base/format.h"

namespace tandem::jobs {
namespace {

// "FP32 [-1,10]"
std::string TensorText(const TensorSpec& tensor) {
  return Format("{} {}", DataTypeName(tensor.type), tensor.unranked ? "of any shape" : ShapeText(tensor.shape));
}

bool Same(const TensorSpec& a, const TensorSpec& b) {
  return a.type == b.type && a.unranked == b.unranked && a.shape == b.shape;
}

// Whether the shapes differ only where the new one has the number of classes.
bool OnlyClassesDiffer(const TensorSpec& before, const TensorSpec& after, std::int64_t classes) {
  return before.type == after.type && before.unranked == after.unranked &&
         std::ranges::equal(before.shape, after.shape,
                            [&](std::int64_t was, std::int64_t is) { return was == is || is == classes; });
}

Status CheckNames(std::string_view kind, const std::vector<TensorSpec>& served,
                  const std::vector<TensorSpec>& trained) {
  for (const TensorSpec& tensor : served) {
    if (std::ranges::contains(trained, tensor.name, &TensorSpec::name)) continue;
    return Fail(ErrorCode::kConflict, "the trained model has no {} '{}'; the served one has, {}", kind, tensor.name,
                TensorText(tensor));
  }
  for (const TensorSpec& tensor : trained) {
    if (std::ranges::contains(served, tensor.name, &TensorSpec::name)) continue;
    return Fail(ErrorCode::kConflict, "the trained model has the {} '{}', {}; the served one has not", kind,
                tensor.name, TensorText(tensor));
  }
  return {};
}

Error Differs(std::string_view kind, const TensorSpec& before, const TensorSpec& after) {
  return {ErrorCode::kConflict, Format("{} '{}' of the trained model is {}; that of the served one is {}", kind,
                                       after.name, TensorText(after), TensorText(before))};
}

}  // namespace

Result<std::string> CheckSuccession(const repository::Succession& succession, const std::optional<HeadSpec>& head) {
  const ModelSignature& served = succession.served;
  const ModelSignature& trained = succession.successor;
  TANDEM_TRY(CheckNames("input", served.inputs, trained.inputs));
  TANDEM_TRY(CheckNames("output", served.outputs, trained.outputs));
  for (const TensorSpec& after : trained.inputs) {
    const TensorSpec& before = *served.FindInput(after.name);
    if (!Same(before, after)) return std::unexpected(Differs("input", before, after));
  }
  std::string said;
  for (const TensorSpec& after : trained.outputs) {
    const TensorSpec& before = *served.FindOutput(after.name);
    if (Same(before, after)) continue;
    const bool is_head = head && after.name == (head->output.empty() ? trained.outputs.front().name : head->output);
    if (!is_head || !OnlyClassesDiffer(before, after, head->classes)) {
      return std::unexpected(Differs("output", before, after));
    }
    said = Format("by its new head output '{}' is {}; it was {}", after.name, TensorText(after), TensorText(before));
  }
  return said;
}

}  // namespace tandem::jobs
