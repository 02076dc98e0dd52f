#include "server/repository/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class Layout : public testing::Test {
 protected:
  TestFolder repo_;
  std::vector<fs::path> roots_ = {repo_.path()};
};

TEST_F(Layout, VersionFoldersArePlainIntegersAndOthersAreIgnored) {
  for (const char* folder : {"m/1", "m/12", "m/01", "m/0", "m/-3", "m/v4", "m/1_old", "m/notes"}) {
    repo_.Write(std::string(folder) + "/model.onnx", "x");
  }
  const auto model = FindModelFolder(roots_, "m");
  ASSERT_TRUE(model);
  EXPECT_THAT(model->VersionNumbers(), ElementsAre(1, 12));
}

TEST_F(Layout, HiddenFoldersAndPlainFilesAreNotModels) {
  repo_.Write(".git/config", "x");
  repo_.Write("README.md", "x");
  repo_.Write("m/1/model.onnx", "x");
  const auto scan = ScanRepositories(roots_);
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->models.size(), 1U);
  EXPECT_TRUE(scan->models.contains("m"));
}

TEST_F(Layout, AFolderWhoseNameCannotBeAModelsIsPassedOverWithAWord) {
  repo_.Write("bad\xff/1/model.onnx", "x");
  const auto scan = ScanRepositories(roots_);
  ASSERT_TRUE(scan);
  EXPECT_TRUE(scan->models.empty());
  EXPECT_THAT(scan->ignored, ElementsAre(HasSubstr("not valid UTF-8")));
}

TEST_F(Layout, TwoConfigurationsAreAnErrorNamingBoth) {
  repo_.Write("m/1/model.onnx", "x");
  repo_.Write("m/config.pbtxt", "");
  repo_.Write("m/config.json", "{}");
  const auto model = FindModelFolder(roots_, "m");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, AllOf(HasSubstr("config.pbtxt"), HasSubstr("config.json")));
}

TEST_F(Layout, AModelInTwoRepositoriesIsAnErrorNamingBothAndOnlyForThatModel) {
  const TestFolder second;
  repo_.Write("twice/1/model.onnx", "x");
  second.Write("twice/1/model.onnx", "x");
  second.Write("once/1/model.onnx", "x");
  roots_.push_back(second.path());
  const auto scan = ScanRepositories(roots_);
  ASSERT_TRUE(scan);
  ASSERT_FALSE(scan->models.at("twice"));
  EXPECT_THAT(scan->models.at("twice").error().message,
              AllOf(HasSubstr(repo_.path().string()), HasSubstr(second.path().string())));
  EXPECT_TRUE(scan->models.at("once"));
  EXPECT_FALSE(FindModelFolder(roots_, "twice"));
}

TEST_F(Layout, TheSameRepositoryGivenTwiceIsOne) {
  repo_.Write("m/1/model.onnx", "x");
  roots_.push_back(repo_.path() / ".");
  EXPECT_TRUE(FindModelFolder(roots_, "m"));
  EXPECT_TRUE(ScanRepositories(roots_)->models.at("m"));
}

TEST_F(Layout, ARepositoryThatIsNotThereIsAnErrorOfTheScan) {
  roots_.emplace_back(repo_.path() / "missing");
  const auto scan = ScanRepositories(roots_);
  ASSERT_FALSE(scan);
  EXPECT_THAT(scan.error().message, HasSubstr("missing"));
}

TEST_F(Layout, AModelFolderThatLeadsOutIsRefused) {
  const TestFolder outside;
  outside.Write("1/model.onnx", "x");
  fs::create_directory_symlink(outside.path(), repo_.path() / "m");
  const auto model = FindModelFolder(roots_, "m");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("leads out of the model repository"));
}

TEST_F(Layout, AVersionFolderThatLeadsOutIsRefused) {
  const TestFolder outside;
  outside.Write("model.onnx", "x");
  fs::create_directory(repo_.path() / "m");
  fs::create_directory_symlink(outside.path(), repo_.path() / "m" / "1");
  EXPECT_FALSE(FindModelFolder(roots_, "m"));
}

TEST_F(Layout, AModelFileThatLeadsOutIsRefused) {
  const TestFolder outside;
  outside.Write("secret", "x");
  fs::create_directories(repo_.path() / "m" / "1");
  fs::create_symlink(outside.path() / "secret", repo_.path() / "m" / "1" / "model.onnx");
  const auto model = FindModelFolder(roots_, "m");
  ASSERT_TRUE(model);
  const auto file = FindModelFile(*model, 1, "");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("leads out of the model repository"));
}

TEST_F(Layout, AConfigurationThatLeadsOutIsRefused) {
  const TestFolder outside;
  outside.Write("secret", "x");
  repo_.Write("m/1/model.onnx", "x");
  fs::create_symlink(outside.path() / "secret", repo_.path() / "m" / "config.pbtxt");
  EXPECT_FALSE(FindModelFolder(roots_, "m"));
}

TEST_F(Layout, ALinkWithinTheRepositoryIsFollowed) {
  repo_.Write("a/1/model.onnx", "x");
  fs::create_directory_symlink(repo_.path() / "a", repo_.path() / "b");
  const auto model = FindModelFolder(roots_, "b");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->name, "b");
  EXPECT_TRUE(FindModelFile(*model, 1, ""));
}

TEST_F(Layout, TheModelFileIsTheNamedOneOrAKnownOne) {
  repo_.Write("m/1/model.onnx", "x");
  repo_.Write("m/2/model.plan", "x");
  repo_.Write("m/3/other.onnx", "x");
  repo_.Write("m/4/readme.txt", "x");
  const auto model = FindModelFolder(roots_, "m");
  ASSERT_TRUE(model);
  EXPECT_EQ(FindModelFile(*model, 1, "")->format, ModelFormat::kOnnx);
  EXPECT_EQ(FindModelFile(*model, 2, "")->format, ModelFormat::kTensorRtPlan);
  EXPECT_EQ(FindModelFile(*model, 3, "other.onnx")->path.filename(), "other.onnx");
  EXPECT_FALSE(FindModelFile(*model, 3, ""));
  EXPECT_THAT(FindModelFile(*model, 4, "").error().message, HasSubstr("neither 'model.onnx' nor 'model.plan'"));
  for (const char* name : {"../1/model.onnx", "/etc/passwd", "..", ".", "sub/model.onnx"}) {
    EXPECT_FALSE(FindModelFile(*model, 3, name)) << name;
  }
}

TEST_F(Layout, OnlyAChangeOfAFileIsAChange) {
  repo_.Write("m/1/model.onnx", "x");
  repo_.Write("m/1/weights/w.bin", "x");
  repo_.Write("m/config.pbtxt", "");
  const auto before = FindModelFolder(roots_, "m");
  EXPECT_TRUE(before->SameFiles(*FindModelFolder(roots_, "m")));
  for (const char* file : {"m/1/model.onnx", "m/1/weights/w.bin", "m/config.pbtxt", "m/labels.txt", "m/warmup/x"}) {
    const auto then = FindModelFolder(roots_, "m");
    repo_.Write(file, "y");
    EXPECT_FALSE(then->SameFiles(*FindModelFolder(roots_, "m"))) << file;
  }
}

}  // namespace
}  // namespace tandem::repository
