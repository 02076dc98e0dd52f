#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/result.h"

namespace tandem::cli {

// What the answers of one version were worth.
struct VersionScore {
  std::uint64_t answers = 0;
  std::uint64_t pictures = 0;
  std::uint64_t right = 0;

  [[nodiscard]] double accuracy() const {
    return pictures == 0 ? 0 : static_cast<double>(right) / static_cast<double>(pictures);
  }
};

// Judges the answers to a request that carries pictures of digits, by the version that gave them. Used by one thread,
// the load generator's.
class ServedDigits {
 public:
  explicit ServedDigits(std::vector<std::int64_t> labels) : labels_(std::move(labels)) {}

  // An answer of POST …/infer with binary outputs. One that is no such answer is kInternal, and counts for nothing.
  [[nodiscard]] Status Take(const std::string& body);

  [[nodiscard]] const std::map<std::int64_t, VersionScore>& versions() const { return versions_; }
  // Of a version that never answered it is empty.
  [[nodiscard]] VersionScore Of(std::int64_t version) const;

 private:
  const std::vector<std::int64_t> labels_;
  std::map<std::int64_t, VersionScore> versions_;
};

}  // namespace tandem::cli
