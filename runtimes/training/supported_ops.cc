#include "runtimes/training/supported_ops.h"

#include <algorithm>
#include <array>

namespace tandem::training {
namespace {

// In the order of names.
constexpr std::array<std::string_view, 5> kOps = {"Add", "Div", "Mul", "Sqrt", "Sub"};
static_assert(std::ranges::is_sorted(kOps));

}  // namespace

bool IsSupportedOp(std::string_view op) {
  return std::ranges::binary_search(kOps, op);
}

}  // namespace tandem::training
