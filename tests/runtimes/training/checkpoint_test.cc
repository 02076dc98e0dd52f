#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtimes/training/checkpoint/checkpoint_file.h"
#include "runtimes/training/checkpoint/checkpointer.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : folder_(fs::temp_directory_path() / ("tandem-checkpoint-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~CheckpointTest() override { fs::remove_all(folder_); }

  static Checkpoint Sample(double value = 0.5) {
    return {.state = "step 7\n",
            .tensors = {{"weight/a", at::full({2, 3}, value)},
                        {"weight/empty", at::empty({0, 4})},
                        {"scalar", at::scalar_tensor(3, at::kLong)},
                        {"bytes", at::arange(100, at::kByte)}}};
  }
  static std::string Read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void Write(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  const fs::path folder_;
};

TEST_F(CheckpointTest, ReadsBackWhatWasWritten) {
  const auto size = WriteCheckpoint(folder_ / "c", Sample());
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->bytes, fs::file_size(folder_ / "c"));
  const auto read = ReadCheckpoint(folder_ / "c");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->state, "step 7\n");
  ASSERT_EQ(read->tensors.size(), 4U);
  for (const auto& [name, tensor] : Sample().tensors) {
    EXPECT_TRUE(at::equal(read->tensors.at(name), tensor)) << name;
    EXPECT_EQ(read->tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
  }
}

TEST_F(CheckpointTest, EveryFlippedByteIsNoticed) {
  ASSERT_TRUE(WriteCheckpoint(folder_ / "c", Sample()));
  const std::string good = Read(folder_ / "c");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x21);
    Write(folder_ / "bad", bad);
    EXPECT_FALSE(ReadCheckpoint(folder_ / "bad")) << "byte " << i;
  }
}

TEST_F(CheckpointTest, EveryTruncationIsNoticed) {
  ASSERT_TRUE(WriteCheckpoint(folder_ / "c", Sample()));
  const std::string good = Read(folder_ / "c");
  for (std::size_t i = 0; i < good.size(); ++i) {
    Write(folder_ / "bad", good.substr(0, i));
    EXPECT_FALSE(ReadCheckpoint(folder_ / "bad")) << i << " bytes";
  }
  Write(folder_ / "bad", good + "x");
  EXPECT_FALSE(ReadCheckpoint(folder_ / "bad"));
}

TEST_F(CheckpointTest, AFailedWriteLeavesWhatWasThere) {
  ASSERT_TRUE(WriteCheckpoint(folder_ / "c", Sample(1)));
  // A folder stands where the file is written aside.
  fs::create_directory(folder_ / "c.partial");
  const auto failed = WriteCheckpoint(folder_ / "c", Sample(2));
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("c.partial"), std::string::npos) << failed.error().message;
  const auto read = ReadCheckpoint(folder_ / "c");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tensors.at("weight/a").max().item<double>(), 1);
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  std::vector<std::int64_t> saved;
  {
    Checkpointer checkpointer(folder_, 2, [&](const SavedCheckpoint& one) {
      EXPECT_TRUE(one.size);
      saved.push_back(one.step);
    });
    for (const std::int64_t step : {1, 2, 10, 11}) checkpointer.Save(step, Sample());
    checkpointer.Flush();
    EXPECT_EQ(saved, (std::vector<std::int64_t>{1, 2, 10, 11}));
  }
  EXPECT_EQ(Names(), (std::vector<std::string>{"step-000000010.checkpoint", "step-000000011.checkpoint"}));
}

TEST_F(CheckpointTest, GoesBackToTheLastGoodOne) {
  Checkpointer checkpointer(folder_, 5, [](const SavedCheckpoint&) {});
  for (const std::int64_t step : {1, 2, 3}) checkpointer.Save(step, Sample(static_cast<double>(step)));
  checkpointer.Flush();
  Write(folder_ / "step-000000003.checkpoint", "torn");
  // What a kill left behind is not taken for one.
  Write(folder_ / "step-000000004.checkpoint.partial", "half");
  std::vector<std::string> skipped;
  const auto loaded = checkpointer.LoadNewest([&](const fs::path& file, const Error& why) {
    skipped.push_back(file.filename().string() + ": " + why.message);
  });
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 2);
  EXPECT_EQ(loaded->checkpoint.tensors.at("weight/a").max().item<double>(), 2);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_TRUE(skipped[0].starts_with("step-000000003.checkpoint")) << skipped[0];
}

TEST_F(CheckpointTest, WhatAKillLeftHalfWrittenIsRemoved) {
  Write(folder_ / "step-000000004.checkpoint.partial", "half");
  Write(folder_ / "other.partial", "somebody else's");
  const Checkpointer checkpointer(folder_, 5, [](const SavedCheckpoint&) {});
  EXPECT_EQ(Names(), std::vector<std::string>{"other.partial"});
}

TEST_F(CheckpointTest, AFullDiskIsTold) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  std::string problem;
  Checkpointer checkpointer(folder_, 2, [&](const SavedCheckpoint& one) {
    if (!one.size) problem = one.size.error().message;
  });
  fs::create_symlink("/dev/full", folder_ / "step-000000001.checkpoint.partial");
  checkpointer.Save(1, Sample());
  checkpointer.Flush();
  EXPECT_NE(problem.find("No space left"), std::string::npos) << problem;
  EXPECT_FALSE(checkpointer.LoadNewest([](const fs::path&, const Error&) {}));
}

}  // namespace
}  // namespace tandem::training
