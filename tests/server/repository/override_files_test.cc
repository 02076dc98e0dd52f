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

TEST(TemporaryFolder, WhatAKilledProcessLeftIsRemovedAndWhatIsInUseStays) {
  const TestFolder parent;
  parent.Write("tandem-model-abcdef/1/model.onnx", "left behind");
  parent.Write("tandem-models/1/model.onnx", "somebody's own");
  const TestFolder elsewhere;
  elsewhere.Write("precious", "");
  std::filesystem::create_directory_symlink(elsewhere.path(), parent.path() / "tandem-model-link00");
  const auto used = TemporaryFolder::Create(parent.path());
  ASSERT_TRUE(used) << used.error().message;
  RemoveAbandonedFolders(parent.path());
  EXPECT_FALSE(std::filesystem::exists(parent.path() / "tandem-model-abcdef"));
  EXPECT_TRUE(std::filesystem::exists(parent.path() / "tandem-models/1/model.onnx"));
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() / "precious"));
  EXPECT_TRUE(std::filesystem::exists((*used)->path()));
}

}  // namespace
}  // namespace tandem::repository
