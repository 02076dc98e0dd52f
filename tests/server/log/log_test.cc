#include "server/log/log.h"

#include <array>
#include <functional>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "server/log/log_limit.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Written(const std::function<void()>& act) {
  ::testing::internal::CaptureStderr();
  act();
  EXPECT_TRUE(FlushLog(1min));
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

TEST(Log, SaysHowManyLinesWereDroppedWhenItIsReadAgain) {
  SetUpLog(LogLevel::kInfo, LogFormat::kJson);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  for (int i = 0; i < 10; ++i) LogInfo("x", {{"long", std::string(1 << 20, 'x')}});
  const std::uint64_t dropped = LogLinesDropped();
  EXPECT_GT(dropped, 0u);
  const std::string notice = "\"lines\":\"" + std::to_string(dropped) + "\"}\n";
  std::string read;
  std::array<char, 65536> part{};
  while (!read.ends_with(notice)) {
    const ssize_t size = ::read(pipe[0], part.data(), part.size());
    ASSERT_GT(size, 0);
    read.append(part.data(), static_cast<std::size_t>(size));
  }
  EXPECT_TRUE(FlushLog(1min));
  ::dup2(before, STDERR_FILENO);
  for (const int fd : {before, pipe[0], pipe[1]}) ::close(fd);
  EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(read, '\n')), 10 - dropped + 1);
  EXPECT_THAT(read, HasSubstr(R"("level":"warning","message":"lines of the log were dropped)"));
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
