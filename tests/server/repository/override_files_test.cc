#include "server/repository/override_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

class OverrideFilesTest : public testing::Test {
 protected:
  [[nodiscard]] bool Empty() const { return std::filesystem::is_empty(temporary_.path()); }
  TestFolder temporary_;
};

TEST_F(OverrideFilesTest, FilesAreWrittenAndGoWithTheFolder) {
  {
    const auto folder =
        WriteOverrideFiles({{"1/model.onnx", "abc"}, {"file:2/w.bin", std::string(3, '\0')}}, temporary_.path(), 100);
    ASSERT_TRUE(folder);
    EXPECT_EQ(std::filesystem::file_size((*folder)->path() / "1" / "model.onnx"), 3U);
    EXPECT_EQ(std::filesystem::file_size((*folder)->path() / "2" / "w.bin"), 3U);
    EXPECT_EQ(std::filesystem::status((*folder)->path()).permissions(), std::filesystem::perms::owner_all);
  }
  EXPECT_TRUE(Empty());
}

TEST_F(OverrideFilesTest, AnyOtherPathIsRefusedAndNothingIsWritten) {
  for (const std::string& key : {std::string("model.onnx"),
                                 std::string("1"),
                                 std::string("1/"),
                                 std::string("/model.onnx"),
                                 std::string("../1/model.onnx"),
                                 std::string("1/../model.onnx"),
                                 std::string("1/.."),
                                 std::string("1/a/b"),
                                 std::string("01/model.onnx"),
                                 std::string("0/model.onnx"),
                                 std::string("-1/model.onnx"),
                                 std::string("x/model.onnx"),
                                 std::string("1/a\0b", 5),
                                 std::string("1\0/a", 4),
                                 std::string(""),
                                 std::string("file:"),
                                 "1/" + std::string(5000, 'a'),
                                 std::string("1/a\\..\\b"),
                                 std::string("1//a"),
                                 std::string("99999999999999999999/a"),
                                 std::string("1/\xff")}) {
    const auto folder = WriteOverrideFiles({{"1/good.onnx", "x"}, {key, "x"}}, temporary_.path(), 100);
    ASSERT_FALSE(folder) << key;
    EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument) << key;
    EXPECT_LT(folder.error().message.size(), 300U);
    EXPECT_TRUE(Empty()) << key;
  }
}

TEST_F(OverrideFilesTest, OnePlaceGivenTwiceIsRefused) {
  EXPECT_FALSE(WriteOverrideFiles({{"1/m", "a"}, {"file:1/m", "b"}}, temporary_.path(), 100));
}

TEST_F(OverrideFilesTest, TooManyBytesInAllAreRefused) {
  const auto folder =
      WriteOverrideFiles({{"1/a", std::string(60, 'x')}, {"1/b", std::string(60, 'x')}}, temporary_.path(), 100);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(Empty());
}

}  // namespace
}  // namespace tandem::repository
