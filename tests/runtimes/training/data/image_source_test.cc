#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtimes/training/data/example_source.h"
#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class ImageSourceTest : public ::testing::Test {
 protected:
  ImageSourceTest() {
    spec_ = {.kind = DataKind::kImages, .path = "set"};
    needs_.inputs = {{.name = "input", .type = DataType::kFp32, .shape = {3, 4, 6}}};
    // The name does not say what is in it.
    folder_.Write("set/cat/1.png", Jpeg(Plain(9, 7, {51, 102, 204}), 100));
    folder_.Write("set/cat/2.bin", Png(Plain(6, 4, {255, 0, 51})));
    folder_.Write("set/ant/1.jpg", Png(Plain(30, 30, {0})));
    folder_.Write("set/readme.txt", "no class");
    folder_.Write("set/cat/.thumbs", "no picture");
  }

  Result<std::unique_ptr<ExampleSource>> Open() const { return OpenData(spec_, needs_, folder_.path(), 0); }
  Result<Batch> Read(std::vector<std::int64_t> examples) const {
    TANDEM_ASSIGN(const auto source, Open());
    Batch batch;
    TANDEM_TRY(source->Read(examples, batch));
    return batch;
  }
  std::string Why(const std::vector<std::int64_t>& examples = {0, 1, 2}) const {
    const auto batch = Read(examples);
    return batch ? "it was read" : batch.error().message;
  }

  const DataFolder folder_;
  DataSpec spec_;
  DataNeeds needs_;
};

TEST_F(ImageSourceTest, NumbersClassesByTheNamesOfTheirFolders) {
  const auto source = Open();
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->size(), 3);
  EXPECT_EQ((*source)->classes(), 2);
  EXPECT_THAT((*source)->class_names(), ElementsAre("ant", "cat"));
  const auto batch = Read({2, 0, 1});
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_THAT(Values<std::int64_t>(batch->target), ElementsAre(1, 0, 1));
  EXPECT_THAT(batch->inputs[0].shape, ElementsAre(3, 3, 4, 6));
}

TEST_F(ImageSourceTest, ScalesValuesChannelByChannel) {
  spec_.mean = {0.5, 0, 0.2};
  spec_.deviation = {0.5, 1, 2};
  const auto values = Values<float>(Read({2})->inputs[0]);
  ASSERT_EQ(values.size(), 3u * 4 * 6);
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 24), Each(FloatEq(1)));
  EXPECT_THAT(std::vector<float>(values.begin() + 24, values.begin() + 48), Each(FloatEq(0)));
  EXPECT_THAT(std::vector<float>(values.begin() + 48, values.end()), Each(FloatNear(0, 1e-6)));
}

TEST_F(ImageSourceTest, PutsChannelsLastWhereTheModelDoes) {
  needs_.inputs[0].shape = {4, 6, 3};
  const auto values = Values<float>(Read({2})->inputs[0]);
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 6), ElementsAre(1, 0, 0.2F, 1, 0, 0.2F));
  const auto jpeg = Values<float>(Read({1})->inputs[0]);
  EXPECT_THAT(std::vector<float>(jpeg.begin(), jpeg.begin() + 3),
              ElementsAre(FloatNear(0.2F, 0.01F), FloatNear(0.4F, 0.01F), FloatNear(0.8F, 0.01F)));
}

TEST_F(ImageSourceTest, MakesGreyAndOtherFloats) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{1, 2, 2}, {2, 2, 1}, {2, 2}}) {
    needs_.inputs[0].shape = shape;
    EXPECT_THAT(Values<float>(Read({2})->inputs[0]), Each(FloatNear((0.299F * 255 + 0.114F * 51) / 255, 0.005F)));
  }
  needs_.inputs[0].type = DataType::kFp64;
  EXPECT_EQ(Values<double>(Read({0})->inputs[0]).size(), 4u);
}

TEST_F(ImageSourceTest, NamesTheFileThatIsBroken) {
  folder_.Write("set/cat/1.png", Jpeg(Plain(9, 7, {51, 102, 204})).substr(0, 200));
  EXPECT_THAT(Why(), AllOf(HasSubstr("'set/cat/1.png'"), HasSubstr("JPEG")));
  folder_.Write("set/cat/1.png", "hello");
  EXPECT_THAT(Why(), AllOf(HasSubstr("'set/cat/1.png'"), HasSubstr("neither")));
  folder_.Write("set/cat/1.png", "");
  EXPECT_THAT(Why(), HasSubstr("'set/cat/1.png'"));
}

TEST_F(ImageSourceTest, NoticesStrayFilesWhenItOpens) {
  folder_.Write("set/cat/notes.txt", "hello");
  EXPECT_THAT(Open().error().message, HasSubstr("'set/cat/notes.txt'"));
  fs::remove(folder_.path() / "set/cat/notes.txt");
  fs::create_directories(folder_.path() / "set/cat/deeper");
  EXPECT_THAT(Open().error().message, HasSubstr("'set/cat/deeper' is no regular file"));
}

TEST_F(ImageSourceTest, FollowsNoLinkOutOfTheRoot) {
  const DataFolder elsewhere;
  elsewhere.Write("p.png", Png(Plain(6, 4, {1, 2, 3})));
  fs::create_symlink(elsewhere.path() / "p.png", folder_.path() / "set/cat/3.png");
  EXPECT_THAT(Why({3}), AllOf(HasSubstr("outside the data root"), HasSubstr("'set/cat/3.png'")));
  fs::create_directory_symlink(elsewhere.path(), folder_.path() / "set/dog");
  EXPECT_THAT(Open().error().message, AllOf(HasSubstr("outside the data root"), HasSubstr("'set/dog'")));
}

TEST_F(ImageSourceTest, SaysWhatTheModelCannotTake) {
  needs_.inputs[0].shape = {5, 4, 6};
  EXPECT_THAT(Why(), HasSubstr("[5,4,6]"));
  needs_.inputs[0].shape = {3, -1, 6};
  EXPECT_THAT(Why(), AllOf(HasSubstr("[3,-1,6]"), HasSubstr("fixed height and width")));
  needs_.inputs[0].shape = {3, 4, 6};
  needs_.inputs[0].type = DataType::kInt64;
  EXPECT_THAT(Why(), HasSubstr("INT64"));
  needs_.inputs[0].type = DataType::kFp32;
  needs_.class_count = 1;
  EXPECT_THAT(Why(), HasSubstr("2 classes"));
  needs_.class_count = 0;
  spec_.mean = {1, 2};
  EXPECT_THAT(Why(), HasSubstr("mean has 2"));
  spec_.mean = {};
  spec_.deviation = {0};
  EXPECT_THAT(Why(), HasSubstr("deviation"));
  spec_.deviation = {};
  needs_.classes = false;
  EXPECT_THAT(Why(), HasSubstr("cross-entropy"));
}

TEST_F(ImageSourceTest, NeedsClassesWithPictures) {
  fs::create_directories(folder_.path() / "set/empty");
  EXPECT_THAT(Open().error().message, HasSubstr("'set/empty' has no pictures"));
  spec_.path = "set/cat";
  EXPECT_THAT(Open().error().message, HasSubstr("no folder for a class"));
  spec_.path = "nowhere";
  EXPECT_EQ(Open().error().code, ErrorCode::kNotFound);
}

TEST_F(ImageSourceTest, StopsBetweenPictures) {
  const auto source = Open();
  std::stop_source stop;
  stop.request_stop();
  Batch batch;
  const std::vector<std::int64_t> examples{0, 1, 2};
  EXPECT_EQ((*source)->Read(examples, batch, stop.get_token()).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tandem::training
