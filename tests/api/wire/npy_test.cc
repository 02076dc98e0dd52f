#include "api/wire/npy.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyTest : public ::testing::Test {
 protected:
  NpyTest() : file_(std::filesystem::temp_directory_path() / ("npy_test_" + std::to_string(::getpid()) + ".npy")) {}
  ~NpyTest() override { std::filesystem::remove(file_); }

  Result<Tensor> Read(const std::string& bytes, std::uint64_t max_bytes = 1 << 20) {
    std::ofstream(file_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return ReadNpy(file_, max_bytes);
  }

  // As NumPy writes it, in format 1.0 or 2.0.
  static std::string Npy(const std::string& header, const std::string& data, char version = 1) {
    std::string text("\x93NUMPY");
    text += {version, '\0'};
    const std::size_t size = header.size();
    text += {static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
    if (version > 1) text += {'\0', '\0'};
    return text + header + data;
  }
  static std::string Header(std::string_view descr, std::string_view shape, std::string_view order = "False") {
    return Format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
  }

  const std::filesystem::path file_;
};

TEST_F(NpyTest, ReadsWhatNumpyWrites) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char*>(values), sizeof values);
  for (const char version : {1, 2, 3}) {
    const auto tensor = Read(Npy(Header("<f4", "(2, 3)"), data, version));
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(tensor->type, DataType::kFp32);
    EXPECT_THAT(tensor->shape, ElementsAre(2, 3));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor->data.view.data()), tensor->data.size()), data);
  }
}

TEST_F(NpyTest, ReadsScalarsVectorsAndEmptyArrays) {
  EXPECT_THAT(Read(Npy(Header("<i8", "()"), std::string(8, '\0')))->shape, ElementsAre());
  EXPECT_THAT(Read(Npy(Header("|u1", "(3,)"), "abc"))->shape, ElementsAre(3));
  EXPECT_THAT(Read(Npy(Header("|b1", "(0, 7)"), ""))->shape, ElementsAre(0, 7));
}

TEST_F(NpyTest, RefusesWhatItCannotUseAndSaysWhy) {
  const auto why = [this](const std::string& bytes) {
    const auto tensor = Read(bytes);
    return tensor ? std::string("it was read") : tensor.error().message;
  };
  EXPECT_THAT(why("PK\x03\x04 not numpy at all"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(why(Npy(Header("<f4", "(1,)"), "abcd", 9)), HasSubstr("version 9"));
  EXPECT_THAT(why(Npy(Header("<c8", "(1,)"), "abcdefgh")), HasSubstr("dtype '<c8'"));
  EXPECT_THAT(why(Npy(Header(">f4", "(1,)"), "abcd")), HasSubstr("dtype '>f4'"));
  EXPECT_THAT(why(Npy(Header("<f4", "(1,)", "True"), "abcd")), HasSubstr("Fortran order"));
  EXPECT_THAT(why(Npy(Header("<f4", "(-1,)"), "abcd")), HasSubstr("broken shape"));
  EXPECT_THAT(why(Npy(Header("<f4", "(1"), "abcd")), HasSubstr("broken shape"));
  EXPECT_THAT(why(Npy("{}", "abcd")), HasSubstr("broken .npy header"));
  EXPECT_THAT(why(Npy(Header("<f4", "(4294967296, 4294967296, 4294967296)"), "abcd")), HasSubstr("4294967296"));
}

TEST_F(NpyTest, ComparesTheDataWithTheShape) {
  for (const std::string data : {"abc", "abcdefgh", ""}) {
    const auto tensor = Read(Npy(Header("<f4", "(1,)"), data));
    ASSERT_FALSE(tensor);
    EXPECT_THAT(tensor.error().message, HasSubstr(Format("has {} bytes of data", data.size())));
  }
}

TEST_F(NpyTest, ReservesNoMemoryForWhatIsNotThere) {
  const auto tensor = Read(Npy(Header("<f8", "(400000000,)"), "abcd"), std::uint64_t{1} << 40);
  ASSERT_FALSE(tensor);
  EXPECT_THAT(tensor.error().message, HasSubstr("needs 3200000000"));
}

TEST_F(NpyTest, RefusesMoreThanItsBound) {
  const auto tensor = Read(Npy(Header("<f4", "(4,)"), std::string(16, 'x')), 15);
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().code, ErrorCode::kTooLarge);
}

TEST_F(NpyTest, EndsWellWhereverTheFileIsCut) {
  const std::string whole = Npy(Header("<f4", "(2,)"), "abcdefgh");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(Read(whole.substr(0, size))) << size;
  EXPECT_TRUE(Read(whole));
}

TEST_F(NpyTest, NamesAFileThatIsNotThere) {
  const auto tensor = ReadNpy("/nonexistent/x.npy");
  ASSERT_FALSE(tensor);
  EXPECT_EQ(tensor.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(tensor.error().message, HasSubstr("/nonexistent/x.npy"));
}

}  // namespace
}  // namespace tandem
