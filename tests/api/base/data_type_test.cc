#include "api/base/data_type.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(DataType, EveryNameParsesBackToItsType) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(ParseDataType(DataTypeName(type)), type);
  }
}

TEST(DataType, KnowsTheSizeOfElements) {
  EXPECT_EQ(DataTypeSize(DataType::kBool), 1U);
  EXPECT_EQ(DataTypeSize(DataType::kFp16), 2U);
  EXPECT_EQ(DataTypeSize(DataType::kFp32), 4U);
  EXPECT_EQ(DataTypeSize(DataType::kInt64), 8U);
  EXPECT_EQ(DataTypeSize(DataType::kBf16), 2U);
  EXPECT_EQ(DataTypeSize(DataType::kBytes), 0U);
}

TEST(DataType, RefusesOtherSpellings) {
  for (const std::string_view name : {"", "fp32", "FLOAT", "FP32 ", "TYPE_FP32", "STRING"}) {
    EXPECT_EQ(ParseDataType(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace tandem
