#include "api/base/tensor.h"

#include <cstdint>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor MakeTensor(DataType type, Shape shape, std::string_view bytes) {
  AlignedBuffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return {"x", type, std::move(shape), Bytes::Own(std::move(buffer))};
}

std::string Refusal(const Tensor& tensor) {
  const auto status = CheckTensorData(tensor);
  return status ? "" : status.error().message;
}

std::string Elements(const std::vector<std::string_view>& elements) {
  std::string bytes;
  for (const auto element : elements) AppendBytesElement(element, bytes);
  return bytes;
}

TEST(Tensor, FixedSizeDataMustFitExactly) {
  EXPECT_EQ(Refusal(MakeTensor(DataType::kInt16, {2}, "1234")), "");
  EXPECT_THAT(Refusal(MakeTensor(DataType::kInt16, {2}, "123")), AllOf(HasSubstr("'x'"), HasSubstr("needs 4 bytes")));
  EXPECT_THAT(Refusal(MakeTensor(DataType::kInt16, {2}, "12345")), HasSubstr("5 were given"));
  EXPECT_EQ(Refusal(MakeTensor(DataType::kInt16, {0}, "")), "");
  EXPECT_THAT(Refusal(MakeTensor(DataType::kInt16, {-1}, "")), HasSubstr("negative"));
}

TEST(Tensor, BytesElementsAreWalked) {
  EXPECT_EQ(Refusal(MakeTensor(DataType::kBytes, {2}, Elements({"ab", ""}))), "");
  EXPECT_EQ(Refusal(MakeTensor(DataType::kBytes, {0}, "")), "");
  EXPECT_THAT(Refusal(MakeTensor(DataType::kBytes, {3}, Elements({"ab", ""}))), HasSubstr("needs 3"));
  EXPECT_THAT(Refusal(MakeTensor(DataType::kBytes, {1}, Elements({"ab", ""}))), HasSubstr("4 surplus bytes"));
  EXPECT_THAT(Refusal(MakeTensor(DataType::kBytes, {1}, "abc")), HasSubstr("cut off"));
  EXPECT_THAT(Refusal(MakeTensor(DataType::kBytes, {1}, "\xFF\xFF\xFF\xFFrest")), HasSubstr("4294967295"));
}

TEST(Tensor, BytesElementsReadBack) {
  const std::string bytes = Elements({"a", "", std::string_view("\0b", 2)});
  EXPECT_THAT(BytesElements(std::as_bytes(std::span(bytes))), ElementsAre("a", "", std::string_view("\0b", 2)));
  EXPECT_THAT(BytesElements({}), IsEmpty());
}

TEST(Buffer, IsAlignedForTensors) {
  for (const std::size_t size : {1U, 63U, 1000U}) {
    const AlignedBuffer buffer(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kTensorAlignment, 0U);
    EXPECT_EQ(buffer.size(), size);
  }
}

TEST(Buffer, PartsKeepTheWholeAlive) {
  Bytes part;
  {
    const Bytes whole = Bytes::Own(AlignedBuffer(100));
    part = whole.Part(10, 20);
  }
  EXPECT_EQ(part.size(), 20U);
  EXPECT_EQ(part.owner.use_count(), 1);
}

}  // namespace
}  // namespace tandem
