#include "memory/device_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t BytesOf(const std::string& text, const MemoryThere& there) {
  return BudgetOf(ParseMemoryShare(text).value(), there).bytes;
}

TEST(DeviceBudget, ByDefaultIsFourFifthsOfWhatMayBeUsed) {
  EXPECT_EQ(BudgetOf({}, {.device = 100 * kGiB}).bytes, 80 * kGiB);
  EXPECT_EQ(BudgetOf({}, {.device = 100 * kGiB, .limit = 10 * kGiB}).bytes, 8 * kGiB);
}

TEST(DeviceBudget, ALimitAboveTheMachineIsNone) {
  EXPECT_EQ(BudgetOf({}, {.device = 10 * kGiB, .limit = 100 * kGiB}).bytes, 8 * kGiB);
}

TEST(DeviceBudget, IsWhatTheOperatorSaysAsFarAsThatIsThere) {
  const MemoryThere there{.device = 24 * kGiB, .limit = 6 * kGiB};
  EXPECT_EQ(BytesOf("50%", there), 3 * kGiB);
  EXPECT_EQ(BytesOf("4GiB", there), 4 * kGiB);
  EXPECT_EQ(BytesOf("4000000000", there), 4'000'000'000U);
  EXPECT_EQ(BytesOf("8GiB", there), 6 * kGiB);
}

TEST(DeviceBudget, FollowsALimitThatChanges) {
  const MemoryShare share = ParseMemoryShare("4GiB").value();
  EXPECT_EQ(BudgetOf(share, {.device = 24 * kGiB, .limit = 2 * kGiB}).bytes, 2 * kGiB);
  EXPECT_EQ(BudgetOf(share, {.device = 24 * kGiB, .limit = 8 * kGiB}).bytes, 4 * kGiB);
  EXPECT_EQ(BudgetOf(share, {.device = 24 * kGiB, .limit = 0}).bytes, 0U);
}

TEST(DeviceBudget, TellsWhereItComesFrom) {
  EXPECT_EQ(BudgetWords(BudgetOf({}, {.device = 24 * kGiB})), "80 % of the machine's 24.0 GiB");
  EXPECT_EQ(BudgetWords(BudgetOf({}, {.device = 24 * kGiB, .limit = kGiB})),
            "80 % of the control group's limit of 1.0 GiB");
  EXPECT_EQ(BudgetWords(BudgetOf({.bytes = kGiB}, {.device = 24 * kGiB})), "what --memory says");
  EXPECT_EQ(BudgetWords(BudgetOf({.bytes = 2 * kGiB}, {.device = 24 * kGiB, .limit = kGiB})),
            "all of the control group's limit of 1.0 GiB, less than --memory says");
}

TEST(DeviceBudget, RefusesWhatIsNoShare) {
  for (const char* const wrong : {"", "%", "0%", "101%", "-5%", "nan%", "inf", "-1GiB", "5 bananas", "1023", "80 %%",
                                  "99999999999GiB", "0x10000000"}) {
    const auto share = ParseMemoryShare(wrong);
    ASSERT_FALSE(share) << wrong;
    EXPECT_THAT(share.error().message, HasSubstr(wrong));
  }
  EXPECT_EQ(ParseMemoryShare("12.5 %").value().percent, 12.5);
}

}  // namespace
}  // namespace tandem
