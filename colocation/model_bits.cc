#include "colocation/model_bits.h"

#include <algorithm>

namespace tandem {

ModelBit ModelBits::BitOf(std::string_view model) {
  const MutexLock lock(mu_);
  const auto found = std::ranges::find(models_, model);
  const auto place = static_cast<std::size_t>(found - models_.begin());
  if (found == models_.end()) {
    if (models_.size() + 1 >= kModelBits) return kAnyModel;
    models_.emplace_back(model);
  }
  return static_cast<ModelBit>(place + 1);
}

}  // namespace tandem
