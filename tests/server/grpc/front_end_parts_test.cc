#include "server/grpc/front_end_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::grpc_front {
namespace {

using ::testing::HasSubstr;

TEST(ByteBudget, TurnsAwayWhatDoesNotFitAndSaysWhat) {
  const auto budget = std::make_shared<ByteBudget>(100, "answers");
  auto first = budget->Take(60);
  ASSERT_TRUE(first);
  const auto second = budget->Take(41);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("answers of 60 bytes"));
  first->ReduceTo(59);
  EXPECT_TRUE(budget->Take(41));
  *first = {};
  EXPECT_TRUE(budget->Take(1'000)) << "one that is alone is let in";
}

TEST(ByteBudget, KeepsWhatIsAboveALowerLimitForOthers) {
  const auto budget = std::make_shared<ByteBudget>(100, "answers");
  const auto large = budget->TakeUpTo(80, 80);
  ASSERT_TRUE(large);
  EXPECT_FALSE(budget->TakeUpTo(80, 1));
  EXPECT_TRUE(budget->Take(20));
}

TEST(Guarded, AShortageOfMemoryIsNotTheClientsMistake) {
  const Status failed = Guarded([]() -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tandem::grpc_front
