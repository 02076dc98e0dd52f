#include "server/log/log.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/log/log_limit.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Written(const std::function<void()>& act) {
  ::testing::internal::CaptureStderr();
  act();
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, TextHasTheLevelTheMessageAndTheFields) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  EXPECT_THAT(Written([] { LogInfo("listening", {{"http", "8000"}}); }),
              MatchesRegex("[-0-9]+T[0-9:.]+ info listening http=8000\n"));
  EXPECT_EQ(Written([] { LogDebug("nothing"); }), "");
}

TEST(Log, AValueCannotForgeALine) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  const std::string text = Written([] { LogInfo("x", {{"id", "a\n2026 error forged"}}); });
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  SetUpLog(LogLevel::kInfo, LogFormat::kJson);
  const std::string json = Written([] { LogInfo("x", {{"id", "a\n\"}"}}); });
  EXPECT_EQ(std::ranges::count(json, '\n'), 1);
  EXPECT_THAT(json, HasSubstr(R"("level":"info","message":"x","id":"a\n\"}"})"));
}

TEST(Log, EachLevelIsWrittenByItself) {
  SetUpLog(LogLevel::kWarning, LogFormat::kText);
  EXPECT_EQ(LogEnabled(LogLevel::kInfo), false);
  EXPECT_EQ(LogEnabled(LogLevel::kWarning), true);
  SetLogLevels({.debug = false, .info = true, .warning = false, .error = true});
  EXPECT_NE(Written([] { LogInfo("x"); }), "");
  EXPECT_EQ(Written([] { LogWarning("x"); }), "");
  EXPECT_NE(Written([] { LogError("x"); }), "");
  SetLogLevels(LevelsFrom(LogLevel::kOff));
  EXPECT_EQ(Written([] { LogError("x"); }), "");
}

TEST(Log, TextCanTellTheTimeInUtc) {
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  SetLogTime(LogTime::kUtc);
  EXPECT_THAT(Written([] { LogInfo("x"); }), MatchesRegex("[-0-9]+T[0-9:.]+Z info x\n"));
  SetLogTime(LogTime::kLocal);
  EXPECT_THAT(Written([] { LogInfo("x"); }), MatchesRegex("[-0-9]+T[0-9:.]+ info x\n"));
}

TEST(Log, NamesWhatItKnows) {
  EXPECT_EQ(ParseLogLevel("warning"), LogLevel::kWarning);
  EXPECT_THAT(ParseLogLevel("loud").error().message, HasSubstr("debug, info, warning, error, off"));
  EXPECT_EQ(ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_FALSE(ParseLogFormat("xml"));
}

TEST(LogLimit, LeavesOutAndCountsWhatIsTooMuchForASecond) {
  LogLimit limit(2);
  const MonotonicTime now(1h);
  EXPECT_EQ(limit.Allow(now), 0u);
  EXPECT_EQ(limit.Allow(now + 10ms), 0u);
  EXPECT_EQ(limit.Allow(now + 20ms), std::nullopt);
  EXPECT_EQ(limit.Allow(now + 30ms), std::nullopt);
  EXPECT_EQ(limit.Allow(now + 1s), 2u);
  EXPECT_EQ(limit.Allow(now + 1s), 0u);
}

}  // namespace
}  // namespace tandem
