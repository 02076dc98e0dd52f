#include "runtimes/training/data/data_root.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DataRootTest : public ::testing::Test {
 protected:
  DataRootTest() {
    folder_.Write("root/a/file", "hello");
    folder_.Write("rootless/secret", "secret");
    folder_.Write("secret", "secret");
  }

  std::string Read(const std::string& path) const {
    const auto root = DataRoot::Open(folder_.path() / "root");
    if (!root) return root.error().message;
    const auto file = root->Map(path);
    return file ? std::string(file->bytes()) : file.error().message;
  }

  const DataFolder folder_;
};

TEST_F(DataRootTest, ReadsFilesBelowIt) {
  EXPECT_EQ(Read("a/file"), "hello");
  EXPECT_EQ(Read("a/../a/./file"), "hello");
  EXPECT_EQ(Read((folder_.path() / "root/a/file").string()), "hello");
  folder_.Write("root/empty", "");
  EXPECT_EQ(Read("empty"), "");
}

TEST_F(DataRootTest, RefusesPathsThatLeadOut) {
  EXPECT_THAT(Read("../secret"), AllOf(HasSubstr("outside the data root"), HasSubstr("'../secret'")));
  EXPECT_THAT(Read("a/../../secret"), HasSubstr("outside the data root"));
  EXPECT_THAT(Read("../rootless/secret"), HasSubstr("outside the data root"));
  EXPECT_THAT(Read("/etc/passwd"), HasSubstr("outside the data root"));
  // Whether it is there does not show.
  EXPECT_THAT(Read("../nothing"), HasSubstr("outside the data root"));
}

TEST_F(DataRootTest, FollowsLinksOnlyToWhatIsBelow) {
  fs::create_symlink("a/file", folder_.path() / "root/inside");
  fs::create_symlink(folder_.path() / "secret", folder_.path() / "root/out");
  fs::create_directory_symlink(folder_.path(), folder_.path() / "root/up");
  fs::create_symlink("loop", folder_.path() / "root/loop");
  EXPECT_EQ(Read("inside"), "hello");
  EXPECT_EQ(Read("up/root/a/file"), "hello");
  EXPECT_THAT(Read("out"), AllOf(HasSubstr("outside the data root"), HasSubstr("'out'")));
  EXPECT_THAT(Read("up/secret"), HasSubstr("outside the data root"));
  EXPECT_THAT(Read("loop"), HasSubstr("cannot be read"));
  const auto root = DataRoot::Open(folder_.path() / "root");
  EXPECT_FALSE(root->List("up", 10));
  EXPECT_FALSE(root->IsFolder("up"));
}

TEST_F(DataRootTest, MayItselfBeALink) {
  fs::create_directory_symlink(folder_.path() / "root", folder_.path() / "link");
  const auto root = DataRoot::Open(folder_.path() / "link");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->Map("a/file")->bytes(), "hello");
  EXPECT_EQ(root->Map((folder_.path() / "link/a/file").string())->bytes(), "hello");
}

TEST_F(DataRootTest, ReadsNothingButRegularFiles) {
  EXPECT_THAT(Read("a"), HasSubstr("no regular file"));
  // Opening a pipe that nobody writes to would wait for ever.
  ASSERT_EQ(::mkfifo((folder_.path() / "root/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Read("pipe"), HasSubstr("no regular file"));
  EXPECT_THAT(Read(""), HasSubstr("no path"));
  EXPECT_THAT(Read(std::string("a/file\0x", 8)), HasSubstr("no path"));
  EXPECT_THAT(Read("a/file/x"), HasSubstr("cannot be read"));
  EXPECT_THAT(Read("b"), AllOf(HasSubstr("cannot be read"), HasSubstr("'b'")));
}

TEST_F(DataRootTest, ListsNamesInOrderUpToABound) {
  folder_.Write("root/list/b", "");
  folder_.Write("root/list/a", "");
  folder_.Write("root/list/.hidden", "");
  const auto root = DataRoot::Open(folder_.path() / "root");
  EXPECT_THAT(*root->List("list", 2), ElementsAre("a", "b"));
  EXPECT_EQ(root->List("list", 1).error().code, ErrorCode::kTooLarge);
  EXPECT_FALSE(root->List("a/file", 2));
}

TEST_F(DataRootTest, IsAFolder) {
  EXPECT_EQ(DataRoot::Open(folder_.path() / "nowhere").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(DataRoot::Open(folder_.path() / "secret"));
}

}  // namespace
}  // namespace tandem::training
