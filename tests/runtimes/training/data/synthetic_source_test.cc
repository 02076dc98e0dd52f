#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtimes/training/data/example_source.h"
#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

DataSpec Spec() {
  return {.kind = DataKind::kSynthetic, .path = "", .samples = 100, .classes = 5};
}

DataNeeds Needs() {
  return {.inputs = {{"x", DataType::kFp32, {2, 3}}, {"ids", DataType::kInt64, {4}}}};
}

Batch Read(std::uint64_t seed, const std::vector<std::int64_t>& examples, const DataNeeds& needs = Needs()) {
  const auto source = OpenData(Spec(), needs, "/nowhere", seed);
  EXPECT_TRUE(source) << source.error().message;
  Batch batch;
  EXPECT_TRUE((*source)->Read(examples, batch));
  return batch;
}

std::string Why(const DataSpec& spec, const DataNeeds& needs) {
  const auto source = OpenData(spec, needs, "/nowhere", 0);
  return source ? "it was opened" : source.error().message;
}

TEST(SyntheticSource, DependsOnSeedAndNumberAlone) {
  const Batch many = Read(7, {0, 42, 99});
  const Batch one = Read(7, {42});
  EXPECT_THAT(many.inputs[0].shape, ElementsAre(3, 2, 3));
  const auto values = Values<float>(many.inputs[0]);
  EXPECT_EQ(std::vector<float>(values.begin() + 6, values.begin() + 12), Values<float>(one.inputs[0]));
  EXPECT_EQ(Values<std::int64_t>(many.target)[1], Values<std::int64_t>(one.target)[0]);
  EXPECT_NE(Values<float>(Read(8, {42}).inputs[0]), Values<float>(one.inputs[0]));
  // On every machine.
  EXPECT_THAT(values, Each(AllOf(Ge(-1), Lt(1))));
  EXPECT_THAT(Values<std::int64_t>(many.inputs[1]), Each(AllOf(Ge(0), Lt(2))));
}

TEST(SyntheticSource, HasAllClasses) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 100; ++i) all.push_back(i);
  const auto labels = Values<std::int64_t>(Read(1, all).target);
  EXPECT_THAT(labels, Each(AllOf(Ge(0), Lt(5))));
  for (std::int64_t label = 0; label < 5; ++label) EXPECT_THAT(labels, Contains(label));
}

TEST(SyntheticSource, MakesFloatTargets) {
  DataNeeds needs = Needs();
  needs.classes = false;
  needs.target_shape = {2};
  const Batch batch = Read(1, {3}, needs);
  EXPECT_THAT(batch.target.shape, ElementsAre(1, 2));
  EXPECT_THAT(Values<float>(batch.target), Each(AllOf(Ge(0), Lt(1))));
}

TEST(SyntheticSource, SaysWhatItNeeds) {
  DataSpec spec = Spec();
  spec.samples = 0;
  EXPECT_THAT(Why(spec, Needs()), HasSubstr("samples"));
  spec = Spec();
  spec.classes = 0;
  EXPECT_THAT(Why(spec, Needs()), HasSubstr("how many classes"));
  DataNeeds needs = Needs();
  needs.class_count = 4;
  EXPECT_THAT(Why(Spec(), needs), HasSubstr("5 classes"));
  needs = Needs();
  needs.inputs[1].shape = {-1};
  EXPECT_THAT(Why(Spec(), needs), HasSubstr("'ids'"));
  needs.inputs[1].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_NE(Why(Spec(), needs), "it was opened");
  needs.inputs.clear();
  EXPECT_THAT(Why(Spec(), needs), HasSubstr("no input"));
}

}  // namespace
}  // namespace tandem::training
