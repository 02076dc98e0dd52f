#include "server/jobs/succession_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::jobs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const ModelSignature kServed{.inputs = {{"x", DataType::kFp32, {-1, 64}}},
                             .outputs = {{"y", DataType::kFp32, {-1, 10}}, {"z", DataType::kInt64, {-1}}}};

Result<std::string> Check(const ModelSignature& trained, const std::optional<HeadSpec>& head = {}) {
  return CheckSuccession({.served = kServed, .successor = trained}, head);
}

std::string WhyNot(const ModelSignature& trained, const std::optional<HeadSpec>& head = {}) {
  const auto checked = Check(trained, head);
  EXPECT_FALSE(checked);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::kConflict);
  return checked.error().message;
}

TEST(SuccessionCheck, TheSameTensorsFitAndThereIsNothingToSay) {
  EXPECT_EQ(Check(kServed), "");
  ModelSignature turned = kServed;
  std::swap(turned.outputs[0], turned.outputs[1]);
  EXPECT_EQ(Check(turned), "") << "clients ask by name";
}

TEST(SuccessionCheck, OtherShapesAreNamedOnBothSides) {
  for (const Shape& shape : {Shape{-1, 65}, Shape{-1, -1}, Shape{8, 64}, Shape{-1, 64, 1}, Shape{-1}}) {
    ModelSignature trained = kServed;
    trained.inputs[0].shape = shape;
    EXPECT_THAT(WhyNot(trained),
                AllOf(HasSubstr("input 'x'"), HasSubstr("FP32 " + ShapeText(shape)), HasSubstr("FP32 [-1,64]")));
  }
  ModelSignature trained = kServed;
  trained.outputs[1].shape = {-1, 1};
  EXPECT_THAT(WhyNot(trained), AllOf(HasSubstr("output 'z'"), HasSubstr("INT64 [-1,1]"), HasSubstr("INT64 [-1]")));
}

TEST(SuccessionCheck, OtherTypesAndNamesAreNamed) {
  ModelSignature trained = kServed;
  trained.outputs[0].type = DataType::kFp64;
  EXPECT_THAT(WhyNot(trained), AllOf(HasSubstr("output 'y'"), HasSubstr("FP64"), HasSubstr("FP32")));
  trained = kServed;
  trained.inputs[0].name = "w";
  EXPECT_THAT(WhyNot(trained), HasSubstr("no input 'x'"));
  trained = kServed;
  trained.outputs.push_back({"more", DataType::kFp32, {-1, 2}});
  EXPECT_THAT(WhyNot(trained), AllOf(HasSubstr("output 'more'"), HasSubstr("FP32 [-1,2]")));
  trained = kServed;
  trained.inputs[0].shape.clear();
  trained.inputs[0].unranked = true;
  EXPECT_THAT(WhyNot(trained), HasSubstr("of any shape"));
}

TEST(SuccessionCheck, ANewHeadMayHaveOtherClassesAndThatIsSaid) {
  ModelSignature trained = kServed;
  trained.outputs[0].shape = {-1, 7};
  EXPECT_THAT(WhyNot(trained), HasSubstr("output 'y'"));
  for (const char* output : {"", "y"}) {
    const auto said = Check(trained, HeadSpec{.output = output, .classes = 7});
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_THAT(*said, AllOf(HasSubstr("'y'"), HasSubstr("[-1,7]"), HasSubstr("[-1,10]")));
  }
  EXPECT_THAT(WhyNot(trained, HeadSpec{.output = "", .classes = 8}), HasSubstr("output 'y'"));
  EXPECT_THAT(WhyNot(trained, HeadSpec{.output = "z", .classes = 7}), HasSubstr("output 'y'"));
  trained.outputs[0].shape = {-1, 7, 1};
  EXPECT_THAT(WhyNot(trained, HeadSpec{.output = "", .classes = 7}), HasSubstr("output 'y'"));
  EXPECT_EQ(Check(kServed, HeadSpec{.output = "", .classes = 10}), "");
}

}  // namespace
}  // namespace tandem::jobs
