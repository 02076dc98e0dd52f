#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "api/base/format.h"

namespace tandem::training {

// Checks labels one after another against the number of classes, or finds that number when it is not known.
class ClassCount {
 public:
  // 0: not known.
  explicit ClassCount(std::int64_t known) : known_(known) {}

  [[nodiscard]] bool Take(std::int64_t label) {
    if (label < 0 || label >= (known_ > 0 ? known_ : kMost)) return false;
    seen_ = std::max(seen_, label + 1);
    return true;
  }
  // Why a label was not taken.
  [[nodiscard]] std::string Refusal(std::int64_t label) const {
    if (known_ > 0) return Format("label {} is not one of the {} classes, 0 to {}", label, known_, known_ - 1);
    return Format("label {} is no class; classes are numbered from 0 to at most {}", label, kMost - 1);
  }
  [[nodiscard]] std::int64_t count() const { return known_ > 0 ? known_ : seen_; }

 private:
  // A last layer would not be made for more.
  static constexpr std::int64_t kMost = std::int64_t{1} << 24;

  std::int64_t known_;
  std::int64_t seen_ = 0;
};

}  // namespace tandem::training
