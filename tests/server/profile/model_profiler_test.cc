#include "server/profile/model_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include "server/profile/profiled_session.h"
#include "server/repository/onnx_session_factory.h"
#include "tests/fakes/fake_session.h"
#include "tests/fakes/onnx_writer.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// ONNX Runtime keeps one environment per process.
std::shared_ptr<const OrtEnvironment> Environment() {
  static const std::shared_ptr<const OrtEnvironment> environment = [] {
    auto library = OrtLibrary::Open("");
    EXPECT_TRUE(library) << library.error().message;
    auto made = OrtEnvironment::Create(std::move(*library), {.intra_op_threads = 2});
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }();
  return environment;
}

// A server's parts from the repository to the queue, with nobody before them.
class ModelProfilerTest : public ::testing::Test {
 protected:
  void Start() { ASSERT_TRUE(repository_.Start()); }
  Result<ModelProfile> Profile(const ProfileRequest& request) {
    CancelToken cancel;
    return ModelProfiler(clock_, repository_, service_).Profile(request, cancel);
  }

  const RealClock& clock_ = RealClock::Instance();
  repository::TestFolder models_;
  repository::TestFolder temporary_;
  repository::OnnxSessionFactory factory_{Environment()};
  repository::ModelRepository repository_{
      repository::RepositoryOptions{.roots = {models_.path()}, .temporary_folder = temporary_.path()}, factory_};
  BoundedQueueAdmission admission_;
  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
  SharedRegions regions_;
  std::atomic<int> counted_runs_{0};
  Dispatcher dispatcher_{
      clock_, admission_, {.on_run = [this](const Servable&, const RunRecord&) { ++counted_runs_; }}};
  InferenceService service_{
      {clock_, dispatcher_, regions_, metrics_},
      [this](std::string_view model, std::string_view version) { return repository_.Find(model, version); },
      std::nullopt};
};

TEST_F(ModelProfilerTest, TellsWhatEveryNodeTookAndLeavesNothingBehind) {
  fakes::MlpModel().WriteTo(models_.path() / "m/3/model.onnx");
  Start();
  const auto profile = Profile({.model = "m", .runs = 4});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->model, "m");
  EXPECT_EQ(profile->version, "3");
  ASSERT_EQ(profile->inputs.size(), 1U);
  EXPECT_EQ(profile->inputs[0].shape, (Shape{1, 64}));
  EXPECT_EQ(profile->session.runs, 4U);
  EXPECT_FALSE(profile->session.nodes.empty());
  for (const NodeProfile& node : profile->session.nodes) EXPECT_EQ(node.count, 4U) << node.name;
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
  EXPECT_EQ(counted_runs_, 0);
  EXPECT_EQ(repository_.Find("m", "").value()->statistics().Totals().execution_count, 0U);
}

TEST_F(ModelProfilerTest, LargerInputsAreThoseThatRan) {
  fakes::MlpModel().WriteTo(models_.path() / "m/1/model.onnx");
  Start();
  const auto profile = Profile({.model = "m", .shapes = {{"x", {8, 64}}}});
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->inputs[0].shape, (Shape{8, 64}));
  EXPECT_EQ(profile->session.runs, ModelProfiler::kUsualRuns);
}

TEST_F(ModelProfilerTest, WhatDoesNotFitIsRefusedAsARequestWouldBe) {
  fakes::MlpModel().WriteTo(models_.path() / "m/1/model.onnx");
  Start();
  EXPECT_EQ(Profile({.model = "nobody"}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Profile({.model = "m", .version = "9"}).error().code, ErrorCode::kNotFound);
  for (const Shape& shape : {Shape{1, 65}, Shape{64}, Shape{100'000, 64}}) {
    const auto profile = Profile({.model = "m", .shapes = {{"x", shape}}});
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error().code, ErrorCode::kInvalidArgument) << profile.error().message;
  }
  EXPECT_THAT(Profile({.model = "m", .runs = 5000}).error().message, HasSubstr("1 to 1000"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
}

TEST_F(ModelProfilerTest, AFileThatHasChangedIsNotTheOneThatIsServed) {
  fakes::MlpModel(1).WriteTo(models_.path() / "m/1/model.onnx");
  Start();
  models_.Write("m/1/model.onnx", fakes::MlpModel(2).Serialize());
  EXPECT_EQ(Profile({.model = "m"}).error().code, ErrorCode::kConflict);
}

TEST_F(ModelProfilerTest, NodesOfLoopsAreAmongThem) {
  fakes::SlowModel().WriteTo(models_.path() / "slow/1/model.onnx");
  models_.Write("slow/config.pbtxt",
                "model_warmup { name: \"once\" inputs { key: \"x\" value { zero_data: true } } "
                "inputs { key: \"steps\" value { random_data: true } } }");
  Start();
  const auto profile = Profile({.model = "slow", .runs = 3});
  ASSERT_TRUE(profile) << profile.error().message;
  std::map<std::string, std::uint64_t> counts;
  for (const NodeProfile& node : profile->session.nodes) counts[node.op] += node.count;
  EXPECT_EQ(counts["Loop"], 3U);
}

TEST_F(ModelProfilerTest, WhoeverHasGoneIsNotWaitedFor) {
  fakes::MlpModel().WriteTo(models_.path() / "m/1/model.onnx");
  Start();
  CancelToken gone;
  gone.Cancel();
  const auto profile = ModelProfiler(clock_, repository_, service_).Profile({.model = "m"}, gone);
  ASSERT_FALSE(profile);
  EXPECT_EQ(profile.error().code, ErrorCode::kCancelled);
}

TEST_F(ModelProfilerTest, AServerThatStopsDoesNotProfile) {
  fakes::MlpModel().WriteTo(models_.path() / "m/1/model.onnx");
  Start();
  service_.StopAdmitting();
  EXPECT_EQ(Profile({.model = "m"}).error().code, ErrorCode::kUnavailable);
}

TEST(ModelProfiler, MakesAsManyRunsAsThereIsRoomFor) {
  EXPECT_EQ(ModelProfiler::FitRuns(std::nullopt, 100), ModelProfiler::kUsualRuns);
  EXPECT_EQ(ModelProfiler::FitRuns(std::nullopt, 10'000), 4U);
  EXPECT_EQ(ModelProfiler::FitRuns(1000, 10), 1000U);
  EXPECT_EQ(ModelProfiler::FitRuns(1, 25'000), 1U);
  EXPECT_EQ(ModelProfiler::FitRuns(0, 10).error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(ModelProfiler::FitRuns(5, 10'000).error().message, HasSubstr("1 to 4"));
  EXPECT_EQ(ModelProfiler::FitRuns(std::nullopt, 30'000).error().code, ErrorCode::kTooLarge);
}

TEST(ProfiledSession, ALoopThatDoesNotEndIsStopped) {
  testing::FakeSession endless(testing::PairSignature(), [](auto, auto, CancelToken& cancel) {
    while (!cancel.cancelled()) std::this_thread::sleep_for(1ms);
    return Fail(ErrorCode::kCancelled, "cancelled");
  });
  ProfiledSession session(endless, RealClock::Instance(), 5ms);
  CancelToken cancel;
  for (int i = 0; i < 2; ++i) {
    const auto result = session.Run({}, {}, cancel);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kTooLarge);
  }
  EXPECT_FALSE(cancel.cancelled());
}

TEST(ProfiledSession, WhoeverHasGoneStopsIt) {
  testing::FakeSession endless(testing::PairSignature(), [](auto, auto, CancelToken& cancel) {
    while (!cancel.cancelled()) std::this_thread::sleep_for(1ms);
    return Fail(ErrorCode::kCancelled, "cancelled");
  });
  ProfiledSession session(endless, RealClock::Instance(), 1h);
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_EQ(session.Run({}, {}, cancel).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tandem
