#include "server/repository/version_memory.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace tandem::repository {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

ModelSignature Image(DataType type = DataType::kFp32) {
  ModelSignature signature;
  signature.inputs.push_back({.name = "x", .type = type, .shape = {-1, 3, 224, 224}});
  signature.outputs.push_back({.name = "y", .type = DataType::kFp32, .shape = {-1, 1000}});
  return signature;
}

TEST(VersionMemory, CountsWeightsOrWhatLoadingThemTook) {
  VersionMemory version{.weights = 100 * kMiB};
  EXPECT_EQ(version.Persistent(), 100 * kMiB);
  version.measured = 90 * kMiB;
  EXPECT_EQ(version.Persistent(), 100 * kMiB) << "weights that are mapped are had all the same";
  version.measured = 150 * kMiB;
  EXPECT_EQ(version.Persistent(), 150 * kMiB);
  version.measured = 5000 * kMiB;
  EXPECT_EQ(version.Persistent(), 264 * kMiB) << "the rest was taken by others";
}

TEST(VersionMemory, ARunGrowsWithTheLargestBatch) {
  const std::uint64_t one = GuessRunBytes(Image(), {.max_batch_size = 1});
  EXPECT_EQ(one, 8U * 4 * (3 * 224 * 224 + 1000));
  EXPECT_EQ(GuessRunBytes(Image(), {.max_batch_size = 16}), 16 * one);
  EXPECT_EQ(GuessRunBytes(Image(), {}), one) << "no batch dimension";
}

TEST(VersionMemory, WhatHasNoSizeCountsLittle) {
  ModelSignature text;
  text.inputs.push_back({.name = "x", .type = DataType::kBytes, .shape = {-1}});
  text.inputs.push_back({.name = "z", .type = DataType::kInt64, .shape = {-1, -1}});
  EXPECT_EQ(GuessRunBytes(text, {}), kMiB);
  ModelSignature absurd;
  absurd.inputs.push_back({.name = "x", .shape = {INT64_MAX, INT64_MAX}});
  absurd.inputs.push_back({.name = "y", .shape = {INT64_MAX / 8}});
  EXPECT_LE(GuessRunBytes(absurd, {.max_batch_size = INT64_MAX}), std::uint64_t{1} << 44);
}

}  // namespace
}  // namespace tandem::repository
