#include "api/wire/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JsonValue, AParserWithoutMemoryIsNotTheClientsMistake) {
  const Error shortage = MalformedJson(simdjson::MEMALLOC, {}).error();
  EXPECT_EQ(shortage.code, ErrorCode::kUnavailable);
  EXPECT_THAT(shortage.message, Not(HasSubstr("malformed")));
  EXPECT_EQ(MalformedJson(simdjson::TAPE_ERROR, {}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
