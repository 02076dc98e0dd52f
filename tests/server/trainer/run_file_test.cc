#include "server/trainer/run_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem {
namespace {

class RunFileTest : public testing::Test {
 protected:
  ~RunFileTest() override { std::filesystem::remove(file_); }
  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("tandem-run-" + std::to_string(::getpid()) + ".json");
};

TrainerRun Sample() {
  TrainerRun run{
      .model = "/a/model.onnx", .folder = "/b c", .data_root = "/d", .threads = 3, .number = 12, .measure_only = true};
  run.job.name = "n";
  run.job.model = "m";
  run.job.data = {.kind = DataKind::kSynthetic, .samples = 5, .classes = 2};
  run.job.steps = 7;
  return run;
}

TEST_F(RunFileTest, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(WriteRunFile(Sample(), file_));
  const auto read = ReadRunFile(file_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Sample());
}

TEST_F(RunFileTest, WithoutDataThereIsNoRoot) {
  TrainerRun run = Sample();
  run.data_root.clear();
  ASSERT_TRUE(WriteRunFile(run, file_));
  EXPECT_EQ(ReadRunFile(file_).value(), run);
}

TEST_F(RunFileTest, NamesTheFileThatIsNone) {
  for (const char* text : {"", "{}", "[]", R"({"threads":0})", R"({"model":"x","folder":"y","threads":1,"job":{}})"}) {
    std::ofstream(file_) << text;
    const auto read = ReadRunFile(file_);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message.find(file_.filename().string()), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace tandem
