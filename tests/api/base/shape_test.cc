#include "api/base/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(Shape, IsShownAsAJsonArray) {
  EXPECT_EQ(ShapeText(Shape{}), "[]");
  EXPECT_EQ(ShapeText(Shape{1, 3, -1, 224}), "[1,3,-1,224]");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(ElementCount(Shape{}), 1);
  EXPECT_EQ(ElementCount(Shape{2, 3, 4}), 24);
  EXPECT_EQ(ElementCount(Shape{2, 0, 4}), 0);
  EXPECT_EQ(ElementCount(Shape{INT64_MAX}), INT64_MAX);
}

TEST(Shape, RefusesNegativeDimensions) {
  EXPECT_THAT(ElementCount(Shape{2, -1}).error().message, HasSubstr("[2,-1]"));
  EXPECT_FALSE(ElementCount(Shape{0, -1}));
}

TEST(Shape, RefusesProductsThatOverflow) {
  EXPECT_FALSE(ElementCount(Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}));
  EXPECT_FALSE(ElementCount(Shape{INT64_MAX, 2}));
  // A zero does not hide dimensions that no tensor can have.
  EXPECT_FALSE(ElementCount(Shape{0, INT64_MAX, 2}));
}

TEST(Shape, RefusesTooManyDimensions) {
  EXPECT_TRUE(ElementCount(Shape(kMaxRank, 1)));
  EXPECT_FALSE(ElementCount(Shape(kMaxRank + 1, 1)));
}

TEST(Shape, CountsBytesAndRefusesTheirOverflow) {
  EXPECT_EQ(ByteSize(DataType::kFp32, Shape{2, 3}), 24);
  EXPECT_EQ(ByteSize(DataType::kInt8, Shape{INT64_MAX}), INT64_MAX);
  EXPECT_THAT(ByteSize(DataType::kFp64, Shape{std::int64_t{1} << 60}).error().message, HasSubstr("FP64"));
}

}  // namespace
}  // namespace tandem
