#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/wire/npy.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// np.savez(file, y=np.array([[1, 2]], "<f4"), n=np.array([7], "<i8")), as hexadecimal digits.
constexpr std::string_view kStored =
    "504b03042d000000000000002100b14645eaffffffffffffffff05001400792e6e707901001000880000000000000088000000000000"
    "00934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c202773"
    "68617065273a2028312c2032292c207d2020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020200a0000803f00000040504b03042d000000000000002100b9937b98ffffffffffffff"
    "ff050014006e2e6e70790100100088000000000000008800000000000000934e554d5059010076007b276465736372273a20273c6938"
    "272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028312c292c207d2020202020202020202020"
    "202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020200a07000000"
    "00000000504b01022d032d000000000000002100b14645ea8800000088000000050000000000000000000000800100000000792e6e70"
    "79504b01022d032d000000000000002100b9937b9888000000880000000500000000000000000000008001bf0000006e2e6e7079504b"
    "05060000000002000200660000007e0100000000";

// np.savez_compressed(file, y=np.array([[1, 2]], "<f4"), n=np.array([7], "<i8")), as hexadecimal digits.
constexpr std::string_view kPacked =
    "504b03042d000000080000002100b14645eaffffffffffffffff05001400792e6e70790100100088000000000000004e000000000000"
    "009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416"
    "a402f91a863a0a469a3a0ab50a64032e0686067b0606060700504b03042d000000080000002100b9937b98ffffffffffffffff050014"
    "006e2e6e707901001000880000000000000048000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a0"
    "9e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a863a9a3a0ab50a14002e7606080000504b01022d032d000000"
    "080000002100b14645ea4e00000088000000050000000000000000000000800100000000792e6e7079504b01022d032d000000080000"
    "002100b9937b9848000000880000000500000000000000000000008001850000006e2e6e7079504b0506000000000200020066000000"
    "040100000000";

std::string FromHex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

class NpzTest : public ::testing::Test {
 protected:
  NpzTest() : file_(std::filesystem::temp_directory_path() / ("npz_test_" + std::to_string(::getpid()) + ".npz")) {}
  ~NpzTest() override { std::filesystem::remove(file_); }

  Result<std::vector<Tensor>> Read(const std::string& bytes, std::uint64_t max_bytes = 1 << 20) {
    std::ofstream(file_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return ReadNpz(file_, max_bytes);
  }

  const std::filesystem::path file_;
};

TEST_F(NpzTest, ReadsWhatNumpyWrites) {
  for (const std::string_view digits : {kStored, kPacked}) {
    const auto arrays = Read(FromHex(digits));
    ASSERT_TRUE(arrays) << arrays.error().message;
    ASSERT_EQ(arrays->size(), 2u);
    EXPECT_EQ((*arrays)[0].name, "y");
    EXPECT_EQ((*arrays)[0].type, DataType::kFp32);
    EXPECT_THAT((*arrays)[0].shape, ElementsAre(1, 2));
    EXPECT_EQ((*arrays)[1].name, "n");
    EXPECT_EQ((*arrays)[1].data.view[0], std::byte{7});
  }
}

Tensor Array(const std::string& name, DataType type, Shape shape, std::string_view data) {
  AlignedBuffer buffer(data.size());
  std::memcpy(buffer.data(), data.data(), data.size());
  return {.name = name, .type = type, .shape = std::move(shape), .data = Bytes::Own(std::move(buffer))};
}

TEST_F(NpzTest, WhatIsWrittenIsReadAgain) {
  const std::vector<Tensor> arrays = {
      Array("x", DataType::kFp32, {1, 2}, "abcdefgh"), Array("y", DataType::kInt64, {1}, "12345678"),
      Array("one", DataType::kUint8, {}, "z"), Array("none", DataType::kFp64, {0, 3}, "")};
  ASSERT_TRUE(WriteNpz(file_, arrays));
  const auto read = ReadNpz(file_);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*read)[i].name, arrays[i].name);
    EXPECT_EQ((*read)[i].type, arrays[i].type);
    EXPECT_EQ((*read)[i].shape, arrays[i].shape);
    EXPECT_TRUE(std::ranges::equal((*read)[i].data.view, arrays[i].data.view)) << arrays[i].name;
  }
}

TEST_F(NpzTest, RefusesToWriteWhatNumpyDoesNotHaveOrDoesNotFit) {
  EXPECT_FALSE(WriteNpz(file_, {Array("b", DataType::kBf16, {1}, "ab")}));
  EXPECT_FALSE(WriteNpz(file_, {Array("b", DataType::kFp32, {2}, "abcd")}));
  EXPECT_FALSE(WriteNpz("/no/such/folder/a.npz", {}));
}

TEST_F(NpzTest, EndsWellWhereverTheFileIsCutOrChanged) {
  for (const std::string_view digits : {kStored, kPacked}) {
    const std::string whole = FromHex(digits);
    for (std::size_t size = 0; size < whole.size(); size += 3) EXPECT_FALSE(Read(whole.substr(0, size))) << size;
    for (std::size_t i = 0; i < whole.size(); i += 3) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0x5a);
      const auto arrays = Read(changed);
      if (!arrays) {
        EXPECT_THAT(arrays.error().message, HasSubstr(file_.string()));
      }
    }
  }
}

TEST_F(NpzTest, DataThatChangedIsNoticed) {
  std::string bytes = FromHex(kStored);
  const std::size_t data = bytes.find('\n', bytes.find("NUMPY")) + 1;  // After the header of the first array.
  bytes[data] = static_cast<char>(bytes[data] ^ 1);
  const auto arrays = Read(bytes);
  ASSERT_FALSE(arrays);
  EXPECT_THAT(arrays.error().message, HasSubstr("checksum"));
}

TEST_F(NpzTest, RefusesWhatIsNone) {
  EXPECT_THAT(Read("").error().message, HasSubstr("ZIP"));
  EXPECT_THAT(Read(std::string(1000, 'x')).error().message, HasSubstr("ZIP"));
  const auto missing = ReadNpz("/no/such/file.npz");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ReadNpz(std::filesystem::temp_directory_path()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Read(FromHex(kStored), 100).error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace tandem
