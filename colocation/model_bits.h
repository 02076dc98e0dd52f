#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/mutex.h"

namespace tandem {

// A model's place in sets of models; kAnyModel stands for all of them.
using ModelBit = std::uint8_t;
inline constexpr ModelBit kAnyModel = 0;
inline constexpr std::size_t kModelBits = 64;

// Models in one word.
using ModelSet = std::uint64_t;
inline constexpr ModelSet kEveryModel = ~ModelSet{0};

[[nodiscard]] constexpr ModelSet SetOf(ModelBit bit) {
  return bit == kAnyModel ? kEveryModel : ModelSet{1} << bit;
}

// Gives models their bits, by name: the first 63 that are asked for have one each, for good; those after them share
// kAnyModel, so that what concerns any model concerns them, and the other way round. Thread-safe. Not for the path of
// a request: who needs it there keeps it.
class ModelBits {
 public:
  [[nodiscard]] ModelBit BitOf(std::string_view model) EXCLUDES(mu_);

 private:
  Mutex mu_;
  std::vector<std::string> models_ GUARDED_BY(mu_);  // By their bits, from 1 on.
};

}  // namespace tandem
