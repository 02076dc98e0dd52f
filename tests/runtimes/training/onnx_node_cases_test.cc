// ONNX's own test of every operator and form: each case is computed rightly, or stands in the list of those that
// training does not know, with the reason.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include <fnmatch.h>
#include <gtest/gtest.h>

#include "tests/runtimes/training/onnx_cases.h"

namespace tandem::training {
namespace {

// "pattern  reason" a line; # begins a comment.
std::map<std::string, std::string> ReadUnsupported() {
  std::map<std::string, std::string> patterns;
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/runtimes/training/unsupported_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << line << " has no reason";
    patterns.emplace(line.substr(0, space), line.substr(space + 1));
  }
  return patterns;
}

bool IsLike(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Outputs that are drawn by chance; no two libraries draw the same.
bool IsRandom(const std::string& name) {
  return IsLike(name, "test_bernoulli*") || (IsLike(name, "test_training_dropout*") && !IsLike(name, "*zero_ratio*"));
}

// The stored output divides by what lies beyond the padding too. Later releases of ONNX corrected it to what ONNX
// Runtime and libtorch compute.
bool IsWrong(const std::string& name) {
  return name == "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True";
}

TEST(OnnxNodeCases, EachIsRightOrListedAsUnsupported) {
  const auto unsupported = ReadUnsupported();
  std::set<std::string> used;
  int right = 0;
  int listed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kOnnxData / "node")) {
    const std::string name = entry.path().filename();
    const auto test = ReadCase(entry.path());
    const auto comparison = IsRandom(name) || IsWrong(name) ? Comparison::kShapes : Comparison::kValues;
    Result<std::string> result = test ? RunCase(*test, comparison) : std::unexpected(test.error());
    const bool runs = result.has_value();
    const bool refused = !runs && result.error().code == ErrorCode::kUnsupported;
    bool in_list = false;
    for (const auto& [pattern, reason] : unsupported) {
      if (!IsLike(name, pattern)) continue;
      in_list = true;
      used.insert(pattern);
    }
    if (in_list) {
      ++listed;
      EXPECT_TRUE(refused) << name << " is in the list of unsupported cases, and is not refused: "
                           << (runs ? "it runs; " + *result : result.error().message);
    } else {
      EXPECT_EQ(runs ? *result : result.error().message, "") << name;
      right += runs && result->empty();
    }
  }
  for (const auto& [pattern, reason] : unsupported) {
    EXPECT_TRUE(used.contains(pattern)) << "no case is like " << pattern;
  }
  std::cout << right << " cases are right, " << listed << " are not supported\n";
  EXPECT_GT(right, 1000);
}

}  // namespace
}  // namespace tandem::training
