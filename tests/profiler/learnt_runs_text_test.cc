#include "profiler/learnt_runs_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

LearntRuns Example() {
  return {.setting = "onnxruntime 1.21.0, 2 threads, 2 cores of Some CPU @ 2 GHz",
          .versions = {{.model = "a model",
                        .version = 3,
                        .fingerprint = 0xabc,
                        .runs = {{.elements = 1, .typical = 1500us, .spread = 1.25},
                                 {.elements = 64, .typical = 3s, .spread = 2}},
                        .narrow = {{.elements = 1, .typical = 2900us, .spread = 1.5}}},
                       {.model = "b",
                        .version = 1,
                        .fingerprint = ~std::uint64_t{0},
                        .runs = {{.elements = 2, .typical = 1ns, .spread = 1}},
                        .narrow = {}}}};
}

// The text with a checksum that fits.
std::string Sealed(const std::string& body) {
  return body + Format("end {:016x}\n", HashText(body));
}
std::string BodyOf(const std::string& text) {
  return text.substr(0, text.rfind("end "));
}

TEST(LearntRunsText, IsReadAsItWasWritten) {
  const auto read = ReadLearntRuns(WriteLearntRuns(Example()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Example());
  EXPECT_EQ(WriteLearntRuns(*read), WriteLearntRuns(Example()));
}

TEST(LearntRunsText, IsRefusedWhereverItIsCutOrChanged) {
  const std::string text = WriteLearntRuns(Example());
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(ReadLearntRuns(text.substr(0, size))) << size;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(ReadLearntRuns(changed)) << at;
  }
  EXPECT_FALSE(ReadLearntRuns(text + text));
}

TEST(LearntRunsText, NamesTheLineThatIsWrongAlsoUnderAChecksumThatFits) {
  const std::string body = BodyOf(WriteLearntRuns(Example()));
  for (const char* line : {"run 65 0 1.5",
                           "run 65 -5 1.5",
                           "run 65 5 0.5",
                           "run 65 5 nan",
                           "run 65 5 inf",
                           "run 65 5",
                           "run 65 5 1 1",
                           "run -1 5 1",
                           "run 2 5 1",
                           "run x 5 1",
                           "run 65 99999999999999999999 1",
                           "version 1 abc",
                           "version x abc m",
                           "version -1 abc m",
                           "version 1 xyz m",
                           "colour blue",
                           "",
                           "run 65 5 1\r",
                           "narrow 65 0 1",
                           "narrow x 5 1"}) {
    const auto read = ReadLearntRuns(Sealed(body + line + "\n"));
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().message, HasSubstr("line 9 ")) << line;
  }
  EXPECT_TRUE(ReadLearntRuns(Sealed(body + "run 65 5 1\n")));
  EXPECT_TRUE(ReadLearntRuns(Sealed(body + "narrow 65 5 1\n")));
  EXPECT_FALSE(ReadLearntRuns(Sealed(body + "narrow 65 5 1\nrun 66 5 1\n"))) << "in the order in which it is written";
}

TEST(LearntRunsText, IsBounded) {
  const std::string body = BodyOf(WriteLearntRuns({.setting = "s", .versions = {}}));
  EXPECT_FALSE(ReadLearntRuns(Sealed(body + "version 1 0 " + std::string(2000, 'x') + "\n")));
  std::string many = body;
  for (std::size_t i = 0; i < kMaxLearntVersions; ++i) many += "version 1 0 m\n";
  EXPECT_TRUE(ReadLearntRuns(Sealed(many)));
  EXPECT_FALSE(ReadLearntRuns(Sealed(many + "version 1 0 m\n")));
  EXPECT_FALSE(ReadLearntRuns(std::string(kMaxLearntBytes + 1, 'x')));
}

TEST(LearntRunsText, BytesOfAnyKindAreReadOrRefused) {
  const auto holds = rc::check("garbage", [](const std::vector<std::string>& lines) {
    std::string body = BodyOf(WriteLearntRuns(Example()));
    for (const std::string& line : lines) body += line + "\n";
    const auto read = ReadLearntRuns(Sealed(body));
    if (read) RC_ASSERT(ReadLearntRuns(WriteLearntRuns(*read)).has_value());
  });
  EXPECT_TRUE(holds);
}

TEST(LearntRunsText, NamesThatWouldBreakALineAreLeftOut) {
  LearntRuns learnt = Example();
  learnt.versions[0].model = "a\nversion 1 0 b";
  const auto read = ReadLearntRuns(WriteLearntRuns(learnt));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->versions.size(), 1u);
  EXPECT_EQ(read->versions[0].model, "b");
}

}  // namespace
}  // namespace tandem
