#include "server/core/settings.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(LogSettings, AppliesAnUpdateWholeOrNotAtAll) {
  int applied = 0;
  LogSettings settings([&](const LogSettings::Values&) { ++applied; });
  EXPECT_FALSE(settings.Update({{"log_info", false}, {"log_colour", true}}));
  EXPECT_EQ(std::get<bool>(settings.Get().at("log_info")), true);
  EXPECT_EQ(applied, 0);
  EXPECT_TRUE(settings.Update({{"log_info", false}, {"log_verbose_level", std::uint32_t{2}}}));
  EXPECT_EQ(std::get<bool>(settings.Get().at("log_info")), false);
  EXPECT_EQ(applied, 1);
}

TEST(LogSettings, BeginsWithWhatHoldsAndIsSilentWhenNothingChanges) {
  LogSettings::Values initial = LogSettings::Defaults();
  initial["log_info"] = false;
  int applied = 0;
  LogSettings settings([&](const LogSettings::Values&) { ++applied; }, initial);
  EXPECT_EQ(settings.Get(), initial);
  EXPECT_TRUE(settings.Update({{"log_info", false}}));
  EXPECT_TRUE(settings.Update({}));
  EXPECT_EQ(applied, 0);
  EXPECT_TRUE(settings.Update({{"log_format", std::string("ISO8601")}}));
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(std::get<bool>(settings.Get().at("log_info")), false);
}

TEST(LogSettings, RefusesWrongTypesAndFilesOfTheCallersChoice) {
  LogSettings settings([](const LogSettings::Values&) {});
  EXPECT_FALSE(settings.Update({{"log_info", std::string("yes")}}));
  EXPECT_FALSE(settings.Update({{"log_format", std::string("xml")}}));
  const auto file = settings.Update({{"log_file", std::string("/etc/passwd")}});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
}

TEST(TraceSettings, AModelHasTheGlobalValueUntilItHasItsOwn) {
  TraceSettings settings;
  ASSERT_TRUE(settings.Update("", {{"trace_rate", std::vector<std::string>{"10"}}}));
  EXPECT_EQ(settings.Get("m").at("trace_rate"), std::vector<std::string>{"10"});
  ASSERT_TRUE(settings.Update("m", {{"trace_rate", std::vector<std::string>{"5"}}}));
  EXPECT_EQ(settings.Get("m").at("trace_rate"), std::vector<std::string>{"5"});
  EXPECT_EQ(settings.Get("").at("trace_rate"), std::vector<std::string>{"10"});
  ASSERT_TRUE(settings.Update("m", {{"trace_rate", std::nullopt}}));
  EXPECT_EQ(settings.Get("m").at("trace_rate"), std::vector<std::string>{"10"});
}

TEST(TraceSettings, RefusesUnknownNamesAndValues) {
  TraceSettings settings;
  EXPECT_FALSE(settings.Update("", {{"nope", std::vector<std::string>{"1"}}}));
  EXPECT_FALSE(settings.Update("", {{"nope", std::nullopt}}));
  EXPECT_FALSE(settings.Update("", {{"trace_rate", std::vector<std::string>{"0"}}}));
  EXPECT_FALSE(settings.Update("", {{"trace_rate", std::vector<std::string>{"ten"}}}));
  EXPECT_FALSE(settings.Update("", {{"trace_level", std::vector<std::string>{"ALL"}}}));
  EXPECT_FALSE(settings.Update("", {{"trace_level", std::vector<std::string>{"OFF", "OFF"}}}));
  EXPECT_FALSE(settings.Update("", {{"trace_level", std::vector<std::string>(100'000, "TENSORS")}}));
  EXPECT_TRUE(settings.Update("", {{"trace_level", std::vector<std::string>{"TIMESTAMPS", "TENSORS"}}}));
  EXPECT_FALSE(settings.Update("", {{"trace_file", std::vector<std::string>{"/etc/passwd"}}}));
}

}  // namespace
}  // namespace tandem
