#include "server/repository/model_repository.h"

#include <future>
#include <map>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/format.h"
#include "api/wire/proto/model_config.pb.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Repository : public testing::Test {
 protected:
  void Open(ControlMode mode = ControlMode::kNone, std::vector<std::string> load_models = {}) {
    options_.roots = {repo_.path()};
    options_.mode = mode;
    options_.load_models = std::move(load_models);
    options_.temporary_folder = temporary_.path();
    options_.log = log_.Sink();
    models_ = std::make_unique<ModelRepository>(options_, factory_);
  }
  void Start(ControlMode mode = ControlMode::kNone, std::vector<std::string> load_models = {}) {
    Open(mode, std::move(load_models));
    ASSERT_TRUE(models_->Start());
  }

  // The value that the served version of an AddModel adds; -1 when it is not served.
  [[nodiscard]] float Served(const std::string& name, const std::string& version = "") const {
    const auto found = models_->Find(name, version);
    return found ? Ask(**found).value_or(-2.0F) : -1.0F;
  }
  [[nodiscard]] ErrorCode FindError(const std::string& name, const std::string& version = "") const {
    const auto found = models_->Find(name, version);
    EXPECT_FALSE(found);
    return found ? ErrorCode::kInternal : found.error().code;
  }
  // "name/version STATE reason" for each entry.
  [[nodiscard]] std::vector<std::string> Index(bool ready_only = false) const {
    std::vector<std::string> lines;
    for (const IndexEntry& entry : models_->Index(ready_only)) {
      lines.push_back(Format("{}/{} {} {}", entry.name, entry.version, ModelStateName(entry.state), entry.reason));
    }
    return lines;
  }
  // Waits until the worker has done all that was posted before.
  void Settle() const {
    std::promise<void> done;
    models_->RescanAsync([&](Status) { done.set_value(); });
    done.get_future().wait();
  }

  TestFolder repo_;
  TestFolder temporary_;
  LogLines log_;
  FakeFactory factory_;
  RepositoryOptions options_;
  std::unique_ptr<ModelRepository> models_;
};

TEST_F(Repository, EveryModelIsServedAfterTheStart) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("b/3/model.onnx", AddModel(2));
  Open();
  EXPECT_FALSE(models_->AllReady());
  ASSERT_TRUE(models_->Start());
  EXPECT_TRUE(models_->AllReady());
  EXPECT_EQ(Served("a"), 1);
  EXPECT_EQ(Served("b"), 2);
  EXPECT_EQ(Served("b", "3"), 2);
  EXPECT_TRUE(models_->IsReady("b", ""));
  EXPECT_THAT(Index(), ElementsAre("a/1 READY ", "b/3 READY "));
  EXPECT_EQ(models_->Snapshot().size(), 2U);
  EXPECT_EQ((*models_->Config("a", ""))->platform(), "onnxruntime_onnx");
  EXPECT_THAT(*models_->Versions("b"), ElementsAre("3"));
}

TEST_F(Repository, RequestsOfModelsAreToldApartWhateverTheirVersion) {
  ModelBits bits;
  options_.bits = &bits;
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("b/1/model.onnx", AddModel(2));
  repo_.Write("b/2/model.onnx", AddModel(3));
  repo_.Write("b/config.pbtxt", "version_policy { all {} }");
  Start();
  const ModelBit a = models_->Find("a", "").value()->model_bit();
  EXPECT_EQ(a, bits.BitOf("a"));
  EXPECT_EQ(models_->Find("b", "1").value()->model_bit(), bits.BitOf("b"));
  EXPECT_EQ(models_->Find("b", "2").value()->model_bit(), bits.BitOf("b"));
  EXPECT_NE(bits.BitOf("b"), a);
  EXPECT_NE(a, kAnyModel);
}

TEST_F(Repository, AVersionIsCountedAsLongAsItHasMemory) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("a/2/model.onnx", AddModel(2));
  repo_.Write("a/config.pbtxt", "version_policy { all {} }");
  std::mutex mu;
  std::map<std::int64_t, std::uint64_t> counted;
  options_.count_memory = [&](const VersionMemory& version) -> std::shared_ptr<void> {
    EXPECT_EQ(version.model, "a");
    EXPECT_GT(version.run, 0U);
    const std::scoped_lock lock(mu);
    counted[version.version] = version.weights;
    return {nullptr, [&, number = version.version](void*) {
              const std::scoped_lock gone(mu);
              counted.erase(number);
            }};
  };
  Start(ControlMode::kExplicit, {"a"});
  EXPECT_EQ(counted, (std::map<std::int64_t, std::uint64_t>{{1, AddModel(1).size()}, {2, AddModel(2).size()}}));
  auto used = models_->Find("a", "2").value();
  ASSERT_TRUE(models_->Unload("a"));
  Settle();
  EXPECT_EQ(counted.size(), 1U) << "a request is still being answered";
  used.reset();
  Settle();
  EXPECT_TRUE(counted.empty());
}

TEST_F(Repository, AskingForWhatIsNotThereSaysWhatIs) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("bad/1/model.onnx", "corrupt");
  Start();
  EXPECT_EQ(FindError("nope"), ErrorCode::kNotFound);
  EXPECT_EQ(FindError("a", "7"), ErrorCode::kNotFound);
  EXPECT_EQ(FindError("a", "99999999999999999999999999"), ErrorCode::kNotFound);
  EXPECT_EQ(FindError("a", "x"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(FindError("nope", "-1"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(FindError("bad"), ErrorCode::kUnavailable);
  EXPECT_EQ(models_->Config("nope", "").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(models_->Find("a", "7").error().message, AllOf(HasSubstr("'a'"), HasSubstr("7"), HasSubstr("serves 1")));
  EXPECT_LT(models_->Find(std::string(100000, 'x'), "").error().message.size(), 300U);
  EXPECT_THAT(models_->Find("\xff\xff", "").error().message, Not(HasSubstr("\xff")));
}

TEST_F(Repository, ACorruptModelHurtsNoOther) {
  repo_.Write("good/1/model.onnx", AddModel(1));
  repo_.Write("corrupt/1/model.onnx", "corrupt");
  repo_.Write("throws/1/model.onnx", "throw");
  repo_.Write("empty/readme", "");
  repo_.Write("nofile/1/readme", "");
  repo_.Write("badconfig/1/model.onnx", AddModel(1));
  repo_.Write("badconfig/config.pbtxt", "max_batch_size: banana");
  Start();
  EXPECT_EQ(Served("good"), 1);
  EXPECT_FALSE(models_->AllReady());
  EXPECT_EQ(models_->StartupFailures().size(), 5U);
  EXPECT_THAT(Index(true), ElementsAre("good/1 READY "));
  EXPECT_THAT(Index(), ElementsAre(AllOf(HasSubstr("badconfig/ UNAVAILABLE"), HasSubstr("config.pbtxt")),
                                   "corrupt/1 UNAVAILABLE the model file is corrupt",
                                   AllOf(HasSubstr("empty/ UNAVAILABLE"), HasSubstr("no version folder")),
                                   "good/1 READY ", AllOf(HasSubstr("nofile/1 UNAVAILABLE"), HasSubstr("model.onnx")),
                                   AllOf(HasSubstr("throws/1 UNAVAILABLE"), HasSubstr("the fake runtime throws"))));
}

TEST_F(Repository, ARepositoryThatIsNotThereStopsTheStart) {
  options_.roots = {repo_.path() / "missing"};
  ModelRepository models(options_, factory_);
  const Status started = models.Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("missing"));
}

TEST_F(Repository, TheVersionPolicyDecidesWhatIsServed) {
  for (const int version : {1, 2, 10}) {
    repo_.Write(Format("m/{}/model.onnx", version), AddModel(version));
  }
  Start();
  EXPECT_EQ(Served("m"), 10);
  EXPECT_EQ(FindError("m", "2"), ErrorCode::kNotFound);
  repo_.Write("m/config.pbtxt", "version_policy { latest { num_versions: 2 } }");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m", "2"), 2);
  EXPECT_EQ(FindError("m", "1"), ErrorCode::kNotFound);
  repo_.Write("m/config.pbtxt", "version_policy { all {} }");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m", "1"), 1);
  EXPECT_EQ(Served("m"), 10);
  repo_.Write("m/config.pbtxt", "version_policy { specific { versions: 1 } }");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
  // Each version was loaded once: a policy does not change what a version is.
  EXPECT_EQ(factory_.created, 3);
  EXPECT_EQ((*models_->Config("m", "1"))->version_policy().specific().versions(0), 1);
  repo_.Write("m/config.pbtxt", "version_policy { specific { versions: 5 } }");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_THAT(Index(), ElementsAre(AllOf(HasSubstr("m/1 READY"), HasSubstr("version 5"))));
}

TEST_F(Repository, AModelIsReloadedWhenItsFileOrConfigurationChanges) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  const auto before = models_->Find("m", "").value();
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(models_->Find("m", "").value(), before);
  EXPECT_EQ(factory_.created, 1);
  repo_.Write("m/1/model.onnx", AddModel(5));
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 5);
  EXPECT_EQ(Ask(*before).value(), 1);
  repo_.Write("m/config.pbtxt", "max_batch_size: 4");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(models_->Find("m", "").value()->batching().max_batch_size, 4);
  // Only the time of the configuration changes: the version stays.
  const auto with_config = models_->Find("m", "").value();
  repo_.Write("m/config.pbtxt", "max_batch_size: 4  ");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(models_->Find("m", "").value(), with_config);
}

TEST_F(Repository, AFailedReloadKeepsTheOldVersionAndSaysWhy) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  repo_.Write("m/1/model.onnx", "corrupt");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_TRUE(models_->AllReady());
  EXPECT_THAT(Index(), ElementsAre(AllOf(HasSubstr("m/1 READY"), HasSubstr("corrupt"))));
  // It is not tried again until it changes.
  const int created = factory_.created;
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(factory_.created, created);
  ASSERT_TRUE(models_->Rescan(/*retry_failed=*/true));
  EXPECT_EQ(factory_.created, created + 1);
  repo_.Write("m/1/model.onnx", AddModel(2));
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 2);
  EXPECT_THAT(Index(), ElementsAre("m/1 READY "));
}

TEST_F(Repository, ANewVersionThatFailsLeavesTheOldOneServing) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  repo_.Write("m/2/model.onnx", "corrupt");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(FindError("m", "2"), ErrorCode::kUnavailable);
  EXPECT_THAT(Index(), ElementsAre(AllOf(HasSubstr("m/1 READY"), HasSubstr("version 2")),
                                   AllOf(HasSubstr("m/2 UNAVAILABLE"), HasSubstr("corrupt"))));
  repo_.Write("m/2/model.onnx", AddModel(2));
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 2);
  EXPECT_EQ(FindError("m", "1"), ErrorCode::kNotFound);
}

TEST_F(Repository, OneBadVersionDoesNotKeepTheOthersFromBeingServed) {
  repo_.Write("m/config.pbtxt", "version_policy { all {} }");
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/2/model.onnx", "corrupt");
  Start();
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(models_->StartupFailures().size(), 1U);
}

TEST_F(Repository, RemovedVersionsAndModelsFinishTheirWork) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/2/model.onnx", AddModel(2));
  repo_.Write("gone/1/model.onnx", AddModel(3));
  Start();
  const auto in_flight = models_->Find("m", "").value();
  const auto gone = models_->Find("gone", "").value();
  repo_.Remove("m/2");
  repo_.Remove("gone");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(FindError("gone"), ErrorCode::kNotFound);
  EXPECT_TRUE(models_->AllReady());
  EXPECT_EQ(Ask(*in_flight).value(), 2);
  EXPECT_EQ(Ask(*gone).value(), 3);
  EXPECT_EQ(factory_.alive, 3);
}

TEST_F(Repository, AnOldVersionIsDestroyedAfterItsLastRequestAndNotByIt) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  auto in_flight = models_->Find("m", "").value();
  repo_.Write("m/1/model.onnx", AddModel(2));
  ASSERT_TRUE(models_->Rescan());
  Settle();
  EXPECT_EQ(factory_.alive, 2);
  in_flight.reset();
  Settle();
  EXPECT_EQ(factory_.alive, 1);
}

TEST_F(Repository, AServableOutlivesTheRepository) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  auto servable = models_->Find("m", "").value();
  models_.reset();
  EXPECT_EQ(Ask(*servable).value(), 1);
  servable.reset();
  EXPECT_EQ(factory_.alive, 0);
}

TEST_F(Repository, ADiskThatIsAwayForAMomentUnloadsNothing) {
  repo_.Write("sub/m/1/model.onnx", AddModel(1));
  options_.roots = {repo_.path() / "sub"};
  models_ = std::make_unique<ModelRepository>(options_, factory_);
  ASSERT_TRUE(models_->Start());
  fs::rename(repo_.path() / "sub", repo_.path() / "away");
  EXPECT_FALSE(models_->Rescan());
  EXPECT_EQ(Served("m"), 1);
}

TEST_F(Repository, PollingFindsNewModels) {
  options_.poll_interval = std::chrono::milliseconds(1);
  repo_.Write("a/1/model.onnx", AddModel(1));
  std::promise<void> loaded;
  std::atomic<bool> seen{false};
  factory_.on_create = [&](const SessionRequest& request) {
    if (request.model == "b" && !seen.exchange(true)) loaded.set_value();
  };
  Start(ControlMode::kPoll);
  repo_.Write("aside/1/model.onnx", AddModel(2));
  fs::rename(repo_.path() / "aside", repo_.path() / "b");
  EXPECT_EQ(loaded.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(Repository, OneModelCanBeReloadedAloneInEveryMode) {
  for (const ControlMode mode : {ControlMode::kNone, ControlMode::kPoll, ControlMode::kExplicit}) {
    repo_.Write("a/1/model.onnx", AddModel(1));
    repo_.Write("b/1/model.onnx", AddModel(10));
    options_.poll_interval = std::chrono::hours(1);
    Start(mode, {"a", "b"});
    repo_.Write("a/2/model.onnx", AddModel(2));
    repo_.Write("b/2/model.onnx", AddModel(20));
    repo_.Write("c/1/model.onnx", AddModel(30));
    const Status reloaded = models_->Reload("a");
    ASSERT_TRUE(reloaded) << reloaded.error().message;
    EXPECT_EQ(Served("a"), 2);
    EXPECT_EQ(Served("b"), 10);
    EXPECT_EQ(FindError("c"), ErrorCode::kNotFound);
    repo_.Remove("a/2");
    ASSERT_TRUE(models_->Reload("a"));
    EXPECT_EQ(Served("a"), 1);
    EXPECT_EQ(Served("b"), 10);
    EXPECT_EQ(models_->Reload("c").error().code, ErrorCode::kConflict);
    EXPECT_EQ(models_->Reload("nowhere").error().code, ErrorCode::kConflict);
    models_.reset();
    for (const char* name : {"a", "b", "c"}) repo_.Remove(name);
  }
}

TEST_F(Repository, AReloadLeavesWhatWasUnloadedOrSentAlone) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit, {"a"});
  ASSERT_TRUE(models_->Unload("a"));
  EXPECT_THAT(models_->Reload("a").error().message, HasSubstr("not loaded"));
  EXPECT_EQ(Served("a"), -1);
  ASSERT_TRUE(models_->Load("a", {.config_json = "{}", .files = {{"1/model.onnx", AddModel(5)}}}));
  const Status reloaded = models_->Reload("a");
  ASSERT_FALSE(reloaded);
  EXPECT_THAT(reloaded.error().message, HasSubstr("came with a load call"));
  EXPECT_EQ(Served("a"), 5);
}

TEST_F(Repository, AFailedReloadOfOneModelKeepsWhatIsServed) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  Start();
  repo_.Write("a/2/model.onnx", "corrupt");
  EXPECT_FALSE(models_->Reload("a"));
  EXPECT_EQ(Served("a"), 1);
}

TEST_F(Repository, ASuccessorIsSeenAsItsFileHasIt) {
  // The configuration narrows both alike, so it must not come between them.
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("a/config.pbtxt", "max_batch_size: 4 input { name: 'x' data_type: TYPE_FP32 dims: 2 }");
  repo_.Write("next.onnx", "in x FP32 -1 3\nout y FP32 -1 2\n");
  Start();
  const auto succession = models_->TrySuccessor("a", repo_.path() / "next.onnx");
  ASSERT_TRUE(succession) << succession.error().message;
  EXPECT_EQ(succession->served.inputs.at(0).shape, (Shape{-1, 2}));
  EXPECT_EQ(succession->successor.inputs.at(0).shape, (Shape{-1, 3}));
  repo_.Write("broken.onnx", "corrupt");
  EXPECT_FALSE(models_->TrySuccessor("a", repo_.path() / "broken.onnx"));
  EXPECT_FALSE(models_->TrySuccessor("nobody", repo_.path() / "next.onnx"));
}

TEST_F(Repository, TheOriginOfAVersionIsItsFilesWord) {
  factory_.metadata = {{"tandem.job", "7"}, {"author", "ann"}};
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("a/config.pbtxt",
              "parameters { key: 'tandem.job' value { string_value: '99' } } "
              "parameters { key: 'tandem.metric' value { string_value: '1' } } "
              "parameters { key: 'mine' value { string_value: 'kept' } }");
  Start();
  const auto config = models_->Config("a", "").value();
  EXPECT_EQ(config->parameters().at("tandem.job").string_value(), "7");
  EXPECT_FALSE(config->parameters().contains("tandem.metric")) << "nobody else can say so";
  EXPECT_FALSE(config->parameters().contains("author"));
  EXPECT_EQ(config->parameters().at("mine").string_value(), "kept");
  EXPECT_EQ(models_->Index(true).at(0).origin, (std::map<std::string, std::string>{{"tandem.job", "7"}}));
}

TEST_F(Repository, LoadAndUnloadAreOnlyForExplicitMode) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  for (const ControlMode mode : {ControlMode::kNone, ControlMode::kPoll}) {
    Start(mode);
    EXPECT_EQ(models_->Load("m", {}).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(models_->Unload("m").error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(Served("m"), 1);
  }
}

TEST_F(Repository, ExplicitModeLoadsWhatItIsTold) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("b/1/model.onnx", AddModel(2));
  Start(ControlMode::kExplicit, {"b", "typo"});
  EXPECT_EQ(Served("b"), 2);
  EXPECT_EQ(FindError("a"), ErrorCode::kNotFound);
  ASSERT_EQ(models_->StartupFailures().size(), 1U);
  EXPECT_EQ(models_->StartupFailures()[0].model, "typo");
  EXPECT_FALSE(models_->AllReady());
  EXPECT_THAT(Index(), ElementsAre("a/ UNAVAILABLE not loaded", "b/1 READY ", HasSubstr("typo/ UNAVAILABLE")));

  ASSERT_TRUE(models_->Load("a", {}));
  EXPECT_EQ(Served("a"), 1);
  ASSERT_TRUE(models_->Unload("a"));
  EXPECT_EQ(FindError("a"), ErrorCode::kNotFound);
  EXPECT_FALSE(models_->IsReady("a", ""));
  EXPECT_THAT(Index()[0], "a/1 UNAVAILABLE unloaded");
  ASSERT_TRUE(models_->Unload("a"));
  EXPECT_EQ(models_->Unload("nope").error().code, ErrorCode::kNotFound);
  // Somebody has unloaded it: looking at the disk does not bring it back.
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(FindError("a"), ErrorCode::kNotFound);
  ASSERT_TRUE(models_->Load("a", {}));
  EXPECT_EQ(Served("a"), 1);
}

TEST_F(Repository, AStarLoadsAllModelsInExplicitMode) {
  repo_.Write("a/1/model.onnx", AddModel(1));
  repo_.Write("b/1/model.onnx", AddModel(2));
  Start(ControlMode::kExplicit, {"*"});
  EXPECT_EQ(Served("a"), 1);
  EXPECT_EQ(Served("b"), 2);
  EXPECT_TRUE(models_->AllReady());
}

TEST_F(Repository, AnUnloadedModelIsUnloadingWhileRequestsAreUnderWay) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit, {"m"});
  auto in_flight = models_->Find("m", "").value();
  ASSERT_TRUE(models_->Unload("m"));
  EXPECT_THAT(Index(), ElementsAre("m/1 UNLOADING unloaded"));
  EXPECT_EQ(Ask(*in_flight).value(), 1);
  in_flight.reset();
  EXPECT_THAT(Index(), ElementsAre("m/1 UNAVAILABLE unloaded"));
}

TEST_F(Repository, NamesThatLeadElsewhereAreRefused) {
  Start(ControlMode::kExplicit);
  for (const std::string& name : {std::string(".."), std::string("../x"), std::string("a/b"), std::string(""),
                                  std::string("a\0b", 3), std::string(300, 'a')}) {
    EXPECT_EQ(models_->Load(name, {}).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(models_->Unload(name).error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(models_->Load("nope", {}).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(Index(), IsEmpty());
}

TEST_F(Repository, AConfigurationMayComeWithTheLoad) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/config.pbtxt", "max_batch_size: 2");
  Start(ControlMode::kExplicit, {"m"});
  ASSERT_TRUE(models_->Load("m", {.config_json = R"({"max_batch_size": 6})"}));
  EXPECT_EQ(models_->Find("m", "").value()->batching().max_batch_size, 6);
  // A look at the disk leaves it alone; a plain load goes back to the disk.
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(models_->Find("m", "").value()->batching().max_batch_size, 6);
  for (const std::string& bad : {std::string("{"), std::string("[]"), std::string(R"({"max_batch_size": "x"})"),
                                 std::string(R"({"max_batch_size": -3})"), std::string(100000, '[')}) {
    const Status status = models_->Load("m", {.config_json = bad});
    ASSERT_FALSE(status) << bad.substr(0, 40);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_LT(status.error().message.size(), 600U);
  }
  EXPECT_EQ(models_->Find("m", "").value()->batching().max_batch_size, 6);
  ASSERT_TRUE(models_->Load("m", {}));
  EXPECT_EQ(models_->Find("m", "").value()->batching().max_batch_size, 2);
}

TEST_F(Repository, FilesMayComeWithTheLoadAndGoWithTheModel) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit, {"m"});
  ASSERT_TRUE(models_->Load("m", {.config_json = "{}", .files = {{"file:7/model.onnx", AddModel(7)}}}));
  EXPECT_EQ(Served("m"), 7);
  EXPECT_EQ(FindError("m", "1"), ErrorCode::kNotFound);
  ASSERT_TRUE(models_->Load("new", {.config_json = "{}", .files = {{"1/model.onnx", AddModel(9)}}}));
  EXPECT_EQ(Served("new"), 9);
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(Served("new"), 9);
  EXPECT_FALSE(fs::is_empty(temporary_.path()));
  ASSERT_TRUE(models_->Unload("new"));
  ASSERT_TRUE(models_->Load("m", {}));
  EXPECT_EQ(Served("m"), 1);
  Settle();
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(Repository, AModelThatCameWithTheLoadLeavesNothingBehindWhenItIsUnloaded) {
  Start(ControlMode::kExplicit);
  ASSERT_TRUE(models_->Load("new", {.config_json = "{}", .files = {{"1/model.onnx", AddModel(9)}}}));
  auto in_flight = models_->Find("new", "").value();
  const std::weak_ptr watched = in_flight;  // As metrics do; it keeps nothing.
  std::promise<Status> unloaded;
  models_->UnloadAsync("new", [&](Status status) { unloaded.set_value(std::move(status)); });
  EXPECT_TRUE(unloaded.get_future().get());
  EXPECT_FALSE(fs::is_empty(temporary_.path()));
  in_flight.reset();
  models_->UnloadAsync("new", [](const Status&) {});
  std::promise<void> settled;  // The worker has no other way to say that it is done; a rescan would clean up, too.
  models_->LoadAsync("nope", {}, [&](const Status&) { settled.set_value(); });
  settled.get_future().wait();
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
  EXPECT_THAT(Index(), IsEmpty());
}

TEST_F(Repository, BadFileOverridesLeaveNothingBehind) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit, {"m"});
  EXPECT_EQ(models_->Load("m", {.files = {{"1/model.onnx", AddModel(2)}}}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(models_->Load("m", {.config_json = "{}", .files = {{"../1/model.onnx", "x"}}}));
  EXPECT_FALSE(models_->Load("m", {.config_json = "{}", .files = {{"1/model.onnx", "corrupt"}}}));
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(models_->Load(Format("x{}", i), {.config_json = "{}", .files = {{"1/model.onnx", "corrupt"}}}));
  }
  EXPECT_EQ(Served("m"), 1);
  EXPECT_EQ(models_->Index(false).size(), 1U);
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(Repository, TemporaryFilesGoWithTheRepository) {
  Start(ControlMode::kExplicit);
  ASSERT_TRUE(models_->Load("m", {.config_json = "{}", .files = {{"1/model.onnx", AddModel(7)}}}));
  models_.reset();
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
}

TEST_F(Repository, AsynchronousCallsAnswerOnceEvenWhenTheRepositoryGoes) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit);
  std::promise<Status> loaded;
  models_->LoadAsync("m", {}, [&](Status status) { loaded.set_value(std::move(status)); });
  EXPECT_TRUE(loaded.get_future().get());
  std::promise<Status> unloaded;
  models_->UnloadAsync("m", [&](Status status) { unloaded.set_value(std::move(status)); });
  EXPECT_TRUE(unloaded.get_future().get());
  std::atomic<int> answers{0};
  for (int i = 0; i < 50; ++i) models_->LoadAsync("m", {}, [&](const Status&) { ++answers; });
  models_.reset();
  EXPECT_EQ(answers, 50);
}

TEST_F(Repository, AModelIsLoadingUntilItHasLoaded) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  std::promise<void> entered;
  std::promise<void> go_on;
  factory_.on_create = [&](const SessionRequest&) {
    entered.set_value();
    go_on.get_future().wait();
  };
  Start(ControlMode::kExplicit);
  std::promise<Status> loaded;
  models_->LoadAsync("m", {}, [&](Status status) { loaded.set_value(std::move(status)); });
  entered.get_future().wait();
  EXPECT_THAT(Index(), ElementsAre("m/ LOADING "));
  EXPECT_EQ(FindError("m"), ErrorCode::kUnavailable);
  go_on.set_value();
  EXPECT_TRUE(loaded.get_future().get());
  EXPECT_EQ(Served("m"), 1);
}

TEST_F(Repository, ModelsWarmUpBeforeTheyAreReady) {
  const FakeClock clock;
  options_.clock = &clock;
  repo_.Write("plain/1/model.onnx", AddModel(1));
  Start();
  EXPECT_EQ(factory_.runs, 4) << "one to be warm, three to learn what a run takes";
  repo_.Write("warm/1/model.onnx", AddModel(1));
  repo_.Write("warm/config.pbtxt", R"(model_warmup { name: "w" count: 3
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })");
  ASSERT_TRUE(models_->Rescan());
  EXPECT_EQ(factory_.runs, 4 + 3);
}

TEST_F(Repository, AModelOnTheCpuHasASecondSessionForRunsOnOneThread) {
  options_.threads = 2;
  std::atomic<int> narrow{0};
  factory_.on_create = [&](const SessionRequest& request) { narrow += request.one_thread ? 1 : 0; };
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("gpu/1/model.onnx", AddModel(1));
  repo_.Write("gpu/config.pbtxt", "instance_group { kind: KIND_GPU }");
  Start();
  const auto found = models_->Find("m", "");
  ASSERT_TRUE(found);
  ASSERT_TRUE((*found)->can_be_narrow());
  EXPECT_EQ(Ask(**found, RunWidth::kOne), 1.0F);
  EXPECT_TRUE((*found)->latency(RunWidth::kOne).Predict(1)) << "it is warm, too";
  EXPECT_FALSE((*models_->Find("gpu", ""))->can_be_narrow());
  EXPECT_EQ(narrow, 1);
}

TEST_F(Repository, WithoutMemoryForASecondSessionAModelIsServedOnAllThreads) {
  options_.threads = 2;
  factory_.on_create = [&](const SessionRequest& request) {
    if (request.one_thread) throw std::bad_alloc();
  };
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start();
  EXPECT_EQ(Served("m"), 1);
  EXPECT_FALSE((*models_->Find("m", ""))->can_be_narrow());
  EXPECT_THAT(log_.text(), HasSubstr("model 'm' version 1 is run on all threads only: not enough memory"));
}

TEST_F(Repository, BothSessionsOfAVersionAreOfTheSameFiles) {
  options_.threads = 2;
  repo_.Write("m/1/model.onnx", AddModel(1));
  factory_.on_create = [&](const SessionRequest& request) {
    if (request.one_thread) repo_.Write("m/1/model.onnx", AddModel(2));
  };
  Start();
  EXPECT_EQ(Served("m"), 1);
  EXPECT_FALSE((*models_->Find("m", ""))->can_be_narrow());
  EXPECT_THAT(log_.text(), HasSubstr("has changed on disk since it was loaded"));
}

TEST_F(Repository, AFailedWarmupIsAnErrorOnlyWhenItWasAskedFor) {
  const std::string failing = "in x FP32 -1 2\nout y FP32 -1 2\nfail\n";
  repo_.Write("silent/1/model.onnx", failing);
  repo_.Write("asked/1/model.onnx", failing);
  repo_.Write("asked/config.pbtxt", R"(model_warmup { name: "sample-1"
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })");
  Start();
  EXPECT_TRUE(models_->IsReady("silent", ""));
  EXPECT_THAT(log_.text(), HasSubstr("model 'silent' starts cold"));
  EXPECT_EQ(FindError("asked"), ErrorCode::kUnavailable);
  EXPECT_THAT(models_->Find("asked", "").error().message, HasSubstr("sample-1"));
}

constexpr const char* kEndless = "batch\nin x FP32 -1 2\nout y FP32 -1 2\nendless\n";
constexpr const char* kWarmup =
    R"(model_warmup { name: "w" inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } })";

TEST_F(Repository, AnEndlessRunOverZerosIsGivenUpAndTheModelServedCold) {
  repo_.Write("m/1/model.onnx", kEndless);
  options_.default_warmup_limit = std::chrono::milliseconds(20);
  Start();
  EXPECT_TRUE(models_->IsReady("m", ""));
  EXPECT_THAT(log_.text(), AllOf(HasSubstr("model 'm' starts cold"), HasSubstr("longer than 20ms")));
}

TEST_F(Repository, AnEndlessWarmupThatWasAskedForIsAFailedLoad) {
  repo_.Write("m/1/model.onnx", kEndless);
  repo_.Write("m/config.pbtxt", kWarmup);
  options_.warmup_limit = std::chrono::milliseconds(20);
  Start();
  EXPECT_THAT(models_->Find("m", "").error().message, AllOf(HasSubstr("model_warmup 'w'"), HasSubstr("longer")));
}

TEST_F(Repository, AnUnloadEndsAnEndlessWarmup) {
  repo_.Write("m/1/model.onnx", kEndless);
  repo_.Write("m/config.pbtxt", kWarmup);
  Start(ControlMode::kExplicit);
  std::promise<Status> loaded;
  models_->LoadAsync("m", {}, [&](Status status) { loaded.set_value(std::move(status)); });
  while (factory_.runs == 0) std::this_thread::yield();
  std::promise<Status> unloaded;
  models_->UnloadAsync("m", [&](Status status) { unloaded.set_value(std::move(status)); });
  EXPECT_TRUE(loaded.get_future().get());
  EXPECT_TRUE(unloaded.get_future().get());
  EXPECT_EQ(FindError("m"), ErrorCode::kNotFound);
}

TEST_F(Repository, ReadinessTellsWhatIsNotServedFromWhatIsNotKnown) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  Start(ControlMode::kExplicit);
  EXPECT_EQ(models_->CheckReady("none", "").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(models_->CheckReady("m", "").error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(models_->Load("m", {}));
  EXPECT_TRUE(models_->CheckReady("m", ""));
  EXPECT_EQ(models_->CheckReady("m", "7").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(models_->CheckReady("m", "x").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Repository, TheEndOfTheServerEndsAnEndlessWarmup) {
  repo_.Write("m/1/model.onnx", kEndless);
  options_.default_warmup_limit = std::chrono::hours(1);
  Open();
  std::thread start([this] { EXPECT_TRUE(models_->Start()); });
  while (factory_.runs == 0) std::this_thread::yield();
  models_->StopLoading();
  start.join();
}

TEST_F(Repository, UnknownFieldsOfAConfigurationAreWarnedAbout) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/config.pbtxt", "max_batch_size: 4 colour: \"blue\"");
  Start();
  EXPECT_EQ(Served("m"), 1);
  EXPECT_THAT(log_.text(), AllOf(HasSubstr("model 'm'"), HasSubstr("colour")));
}

TEST_F(Repository, LabelsAreReadFromTheModelsFolder) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  repo_.Write("m/labels.txt", "cat\r\ndog\n");
  repo_.Write("m/config.pbtxt", R"(max_batch_size: 4 output { name: "y" label_filename: "labels.txt" })");
  repo_.Write("out/1/model.onnx", AddModel(1));
  repo_.Write("out/config.pbtxt", R"(max_batch_size: 4 output { name: "y" label_filename: "../../../etc/passwd" })");
  Start();
  const auto model = models_->Find("m", "");
  ASSERT_TRUE(model);
  EXPECT_THAT((*model)->labels().at("y"), ElementsAre("cat", "dog"));
  EXPECT_FALSE(models_->IsReady("out", ""));
}

TEST_F(Repository, TheFactoryIsToldWhereTheModelsDataMayLie) {
  repo_.Write("m/1/model.onnx", AddModel(1));
  options_.default_providers = {{"onednn", {}}};
  Start();
  const SessionRequest request = factory_.last_request();
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.version, 1);
  EXPECT_EQ(request.file, repo_.path() / "m" / "1" / "model.onnx");
  EXPECT_EQ(request.allowed_root, repo_.path() / "m");
  EXPECT_EQ(request.providers, options_.default_providers);
}

}  // namespace
}  // namespace tandem::repository
