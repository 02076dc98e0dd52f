// ONNX's own test of every operator and form: each case is computed rightly, or stands in the list of those that training
// does not know, with the reason.

#include <filesystem>
#include <fstream>
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

TEST(OnnxNodeCases, EachIsRightOrListedAsUnsupported) {
  const auto unsupported = ReadUnsupported();
  std::set<std::string> used;
  int right = 0;
  int listed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kOnnxData / "node")) {
    const std::string name = entry.path().filename();
    const auto test = ReadCase(entry.path());
    Result<std::string> result = test ? RunCase(*test) : std::unexpected(test.error());
    const bool runs = result.has_value();
    const bool refused = !runs && result.error().code == ErrorCode::kUnsupported;
    bool in_list = false;
    for (const auto& [pattern, reason] : unsupported) {
      if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
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
  RecordProperty("right", right);
  RecordProperty("listed", listed);
  EXPECT_GT(right, 0);
}

}  // namespace
}  // namespace tandem::training
