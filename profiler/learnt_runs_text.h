#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "profiler/learnt_run.h"

namespace tandem {

// What was learnt of the runs of one model version.
struct LearntVersion {
  std::string model;
  std::int64_t version = 0;
  std::uint64_t fingerprint = 0;  // Of what it was made from: other files, other times.
  std::vector<LearntRun> runs;    // By size, ascending.
  std::vector<LearntRun> narrow;  // The same of runs on one thread.

  friend bool operator==(const LearntVersion&, const LearntVersion&) = default;
};

// What was learnt on one machine, in one line of text that says all that its times depend on besides the models.
struct LearntRuns {
  std::string setting;
  std::vector<LearntVersion> versions;

  friend bool operator==(const LearntRuns&, const LearntRuns&) = default;
};

inline constexpr std::size_t kMaxLearntVersions = 1024;
inline constexpr std::size_t kMaxLearntBytes = std::size_t{8} << 20;

// The bits of a text, for fingerprints and checksums (FNV-1a). `seed`: of what came before.
[[nodiscard]] std::uint64_t HashText(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325);

// As a file has it: lines, the last of which is a checksum. Versions whose names have control characters are left out.
[[nodiscard]] std::string WriteLearntRuns(const LearntRuns& learnt);
// Strict: whatever WriteLearntRuns() would not have written is kInvalidArgument and names the line.
[[nodiscard]] Result<LearntRuns> ReadLearntRuns(std::string_view text);

}  // namespace tandem
