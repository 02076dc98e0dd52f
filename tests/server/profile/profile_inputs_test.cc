#include "server/profile/profile_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const TensorSpec kIds{.name = "ids", .type = DataType::kInt64, .shape = {-1, -1}};
const TensorSpec kImage{.name = "image", .type = DataType::kFp32, .shape = {-1, 3, 8, 8}};
const TensorSpec kWords{.name = "words", .type = DataType::kBytes, .shape = {2}};

TEST(ProfileInputs, ABatchOfOneNeedsNoWord) {
  const auto inputs = ProfileInputs({.inputs = {kImage, kWords}}, {.max_batch_size = 8}, {}, nullptr);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).shape, (Shape{1, 3, 8, 8}));
  EXPECT_EQ(inputs->at(0).data.size(), 4U * 3 * 64);
  EXPECT_TRUE(CheckTensorData(inputs->at(1))) << "two empty strings";
}

TEST(ProfileInputs, NamesEveryInputThatNeedsAShape) {
  const TensorSpec mask{.name = "mask", .type = DataType::kInt64, .shape = {-1, -1}};
  const auto inputs = ProfileInputs({.inputs = {kImage, kIds, mask}}, {.max_batch_size = 8}, {}, nullptr);
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(inputs.error().message, AllOf(HasSubstr("'ids' takes [-1,-1]"), HasSubstr("'mask' takes [-1,-1]")));
  EXPECT_FALSE(ProfileInputs({.inputs = {kImage}}, {}, {}, nullptr)) << "nobody says that it is a batch";
}

TEST(ProfileInputs, TakesShapesThatAreGiven) {
  const auto inputs = ProfileInputs({.inputs = {kIds}}, {}, {{"ids", {2, 16}}}, nullptr);
  ASSERT_TRUE(inputs) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).shape, (Shape{2, 16}));
  EXPECT_EQ(inputs->at(0).data.size(), 8U * 32);
  EXPECT_THAT(ProfileInputs({.inputs = {kIds}}, {}, {{"idz", {2, 16}}}, nullptr).error().message, HasSubstr("'idz'"));
  EXPECT_EQ(ProfileInputs({.inputs = {kIds}}, {}, {{"ids", {1 << 20, 1 << 20}}}, nullptr).error().code,
            ErrorCode::kTooLarge);
}

TEST(ProfileInputs, AWarmUpSampleGoesBeforeZeros) {
  repository::WarmupSample sample;
  sample.inputs.push_back(repository::ZeroTensor(kIds, {4, 7}).value());
  EXPECT_EQ(ProfileInputs({.inputs = {kIds}}, {}, {}, &sample)->at(0).shape, (Shape{4, 7}));
  EXPECT_EQ(ProfileInputs({.inputs = {kIds}}, {}, {{"ids", {1, 2}}}, &sample)->at(0).shape, (Shape{1, 2}));
}

TEST(ProfileInputs, WhatIsOptionalIsLeftOut) {
  TensorSpec extra = kIds;
  extra.optional = true;
  EXPECT_TRUE(ProfileInputs({.inputs = {extra}}, {}, {}, nullptr)->empty());
  EXPECT_EQ(ProfileInputs({.inputs = {extra}}, {}, {{"ids", {1, 2}}}, nullptr)->size(), 1U);
}

}  // namespace
}  // namespace tandem
