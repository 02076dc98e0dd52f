#include "server/repository/run_archive.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "colocation/admission.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSetting = "this machine";

class RunArchiveTest : public testing::Test {
 protected:
  // A process that serves what the repository holds; the one before has ended.
  void Begin(const std::string& setting = kSetting) {
    models_.reset();
    archive_.emplace(setting);
    opened_ = archive_->Open(file_);
    RepositoryOptions options;
    options.roots = {repo_.path()};
    options.mode = ControlMode::kExplicit;
    options.load_models = {"*"};
    options.runs = &*archive_;
    options.clock = &clock_;
    models_ = std::make_unique<ModelRepository>(std::move(options), factory_);
    ASSERT_TRUE(models_->Start());
  }
  [[nodiscard]] LatencyModel& Latency(const std::string& model = "m") const {
    return models_->Find(model, "").value()->latency();
  }
  void Learn(std::chrono::nanoseconds took, int runs = 30) {
    for (int i = 0; i < runs; ++i) Latency().Observe(1, took, clock_.Now());
  }
  // Whether a request of one element that must be done within this time is let in by an idle server.
  [[nodiscard]] bool Admits(std::chrono::nanoseconds within) const {
    return DeadlineAdmission()
        .Admit({.model = "m",
                .now = clock_.Now(),
                .deadline = clock_.Now() + within,
                .max_queued = 10,
                .run = Latency().Predict(1)})
        .has_value();
  }

  TestFolder repo_;
  TestFolder state_;
  FakeClock clock_;
  FakeFactory factory_;
  std::filesystem::path file_ = state_.path() / "learnt-runs";
  std::optional<RunArchive> archive_;
  Status opened_;
  std::unique_ptr<ModelRepository> models_;
};

TEST_F(RunArchiveTest, AfterARestartTheFirstRequestIsJudgedByWhatWasLearnt) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  EXPECT_TRUE(Admits(100ms)) << "nothing is known but a run over zeros";
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());

  Begin();
  EXPECT_TRUE(opened_) << opened_.error().message;
  clock_.Advance(1h);
  EXPECT_FALSE(Admits(100ms));
  EXPECT_TRUE(Admits(1s));
  EXPECT_EQ(Latency().Predict(1)->typical, 300ms) << "zeros do not change what requests have taught";
}

TEST_F(RunArchiveTest, TimesOnOneThreadAreKeptApart) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  Learn(300ms);
  const auto narrow = [&]() -> LatencyModel& { return models_->Find("m", "").value()->latency(RunWidth::kOne); };
  narrow().Observe(1, 500ms, clock_.Now());
  ASSERT_TRUE(archive_->Save());
  Begin();
  EXPECT_EQ(Latency().Predict(1)->typical, 300ms);
  EXPECT_EQ(narrow().Predict(1)->typical, 500ms);
}

TEST_F(RunArchiveTest, WhatIsNoLongerTrueIsTriedAgainASecondAfterTheFirstRefusal) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());
  Begin();
  EXPECT_FALSE(Admits(100ms));
  Latency().BeginToAge(clock_.Now());
  clock_.Advance(1100ms);
  EXPECT_TRUE(Admits(100ms));
  Learn(10ms, 10);
  EXPECT_TRUE(Admits(100ms)) << "now by what it has learnt";
}

TEST_F(RunArchiveTest, OtherFilesOrAnotherMachineAreLearntAnew) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());
  Begin("another machine");
  EXPECT_TRUE(opened_);
  EXPECT_TRUE(Admits(100ms));
  Begin();
  EXPECT_FALSE(Admits(100ms)) << "a process that learnt nothing has not spoilt the file";
  repo_.Write("m/1/model.onnx", AddModel(2));
  Begin();
  EXPECT_TRUE(Admits(100ms));
}

TEST_F(RunArchiveTest, AModelThatIsLoadedAnewKeepsWhatItLearnt) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  Learn(300ms);
  repo_.Write("m/config.pbtxt", R"(parameters { key: "slo_ms" value { string_value: "100" } })");
  ASSERT_TRUE(models_->Load("m", {}));
  EXPECT_EQ(Latency().Predict(1)->typical, 300ms) << "another SLO, the same runs";
  ASSERT_TRUE(archive_->Save());
  ASSERT_TRUE(models_->Unload("m"));
  ASSERT_TRUE(models_->Load("m", {}));
  EXPECT_EQ(Latency().Predict(1)->typical, 300ms);
}

TEST_F(RunArchiveTest, AFileThatIsNotOursIsNamedAndChangesNothingElse) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());
  const auto size = std::filesystem::file_size(file_);
  std::filesystem::resize_file(file_, size / 2);
  Begin();
  ASSERT_FALSE(opened_);
  EXPECT_THAT(opened_.error().message, AllOf(HasSubstr(file_.string()), HasSubstr("ignored")));
  EXPECT_TRUE(models_->IsReady("m", ""));
  EXPECT_TRUE(Admits(100ms));
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());
  Begin();
  EXPECT_TRUE(opened_);
  EXPECT_FALSE(Admits(100ms)) << "it was written anew";

  state_.Remove("learnt-runs");
  std::filesystem::create_directory(file_);
  Begin();
  ASSERT_FALSE(opened_);
  Learn(300ms);
  const Status saved = archive_->Save();
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr(file_.string()));
}

TEST_F(RunArchiveTest, WritesOnlyWhatIsNew) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  ASSERT_TRUE(archive_->Save());
  EXPECT_FALSE(std::filesystem::exists(file_)) << "nothing was learnt";
  Learn(300ms);
  ASSERT_TRUE(archive_->Save());
  EXPECT_TRUE(std::filesystem::exists(file_));
  state_.Remove("learnt-runs");
  ASSERT_TRUE(archive_->Save());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(RunArchiveTest, SamplesOfAWarmUpAreRunsLikeOthersButForTheFirst) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/config.pbtxt", R"(max_batch_size: 8 model_warmup { name: "w" batch_size: 4 count: 3
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })");
  repo_.Write("once/1/model.onnx", AddModel(1));
  repo_.Write("once/config.pbtxt", R"(max_batch_size: 8 model_warmup { name: "w"
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })");
  Begin();
  ASSERT_TRUE(Latency().Predict(4));
  EXPECT_FALSE(Latency().Predict(4)->guessed());
  EXPECT_TRUE(Latency().Predict(1)->guessed());
  EXPECT_FALSE(Latency("once").Predict(1)) << "its only run was cold";
}

TEST_F(RunArchiveTest, SamplesChangeNothingOfWhatRequestsHaveTaught) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/config.pbtxt", R"(max_batch_size: 8 model_warmup { name: "w" batch_size: 1 count: 5
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })");
  Begin();
  Learn(300ms, 300);
  const auto learnt = Latency().Predict(1)->typical;
  ASSERT_TRUE(archive_->Save());
  Begin();
  EXPECT_EQ(Latency().Predict(1)->typical, learnt);
}

TEST_F(RunArchiveTest, WhatRequestsOfAModelSayIsKnownToAllItsVersions) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Begin();
  const auto habits = [&]() -> RequestHabits& { return models_->Find("m", "").value()->habits(); };
  for (int i = 0; i < 40; ++i) habits().Note(/*named=*/false);
  EXPECT_TRUE(habits().name_nothing());
  repo_.Write("m/2/model.onnx", AddModel(2));
  ASSERT_TRUE(models_->Load("m", {}));
  ASSERT_EQ(models_->Find("m", "").value()->version(), 2);
  EXPECT_TRUE(habits().name_nothing());
  habits().Note(/*named=*/true);
  ASSERT_TRUE(models_->Unload("m"));
  ASSERT_TRUE(models_->Load("m", {}));
  for (int i = 0; i < 40; ++i) habits().Note(/*named=*/false);
  EXPECT_FALSE(habits().name_nothing());
}

}  // namespace
}  // namespace tandem::repository
