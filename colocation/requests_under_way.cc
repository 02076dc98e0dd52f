#include "colocation/requests_under_way.h"

#include <bit>
#include <cstddef>

namespace tandem {

ModelSet RequestsUnderWay::Among(ModelSet models) const {
  if (models == 0 || by_model_[kAnyModel].load() > 0) return models;
  ModelSet found = 0;
  for (ModelSet rest = models; rest != 0; rest &= rest - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(rest));
    if (by_model_[bit].load() > 0) found |= ModelSet{1} << bit;
  }
  return found;
}

}  // namespace tandem
