// The repository on the real ONNX Runtime.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/proto/model_config.pb.h"
#include "server/repository/model_repository.h"
#include "server/repository/onnx_session_factory.h"
#include "tests/fakes/onnx_writer.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// ONNX Runtime keeps one environment per process.
std::shared_ptr<const OrtEnvironment> Environment() {
  static const std::shared_ptr<const OrtEnvironment> environment = [] {
    auto library = OrtLibrary::Open("");
    EXPECT_TRUE(library) << library.error().message;
    auto made = OrtEnvironment::Create(std::move(*library), {});
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }();
  return environment;
}

class OnnxRepository : public testing::Test {
 protected:
  void Start() {
    models_ = std::make_unique<ModelRepository>(
        RepositoryOptions{.roots = {repo_.path()}, .mode = ControlMode::kExplicit, .load_models = {"*"}}, factory_);
    ASSERT_TRUE(models_->Start());
  }

  // y of one row of four floats.
  [[nodiscard]] std::vector<float> Run(const std::string& model) const {
    const auto found = models_->Find(model, "");
    if (!found) return {};
    AlignedBuffer data(4 * sizeof(float));
    std::memset(data.data(), 0, data.size());
    const std::vector<Tensor> inputs = {{"x", DataType::kFp32, {1, 4}, Bytes::Own(std::move(data))}};
    const std::vector<std::string> outputs = {"y"};
    CancelToken cancel;
    const auto results = (*found)->session().Run(inputs, outputs, cancel);
    if (!results) return {};
    std::vector<float> values(4);
    std::memcpy(values.data(), (*results)[0].data.view.data(), 16);
    return values;
  }

  [[nodiscard]] std::string WhyNot(const std::string& model) const {
    const auto found = models_->Find(model, "");
    return found ? "it is served" : found.error().message;
  }

  TestFolder repo_;
  OnnxSessionFactory factory_{Environment()};
  std::unique_ptr<ModelRepository> models_;
};

TEST_F(OnnxRepository, ABareModelIsEnough) {
  fakes::IdentityModel(DataType::kFp32).WriteTo(repo_.path() / "m/1/model.onnx");
  Start();
  EXPECT_THAT(Run("m"), ElementsAre(0, 0, 0, 0));
  const auto config = models_->Config("m", "");
  ASSERT_TRUE(config);
  EXPECT_GT((*config)->max_batch_size(), 1);
  EXPECT_THAT((*config)->input(0).dims(), ElementsAre(4));
}

TEST_F(OnnxRepository, CorruptModelsAreRefusedAsSuchAndHurtNoOther) {
  fakes::IdentityModel(DataType::kFp32).WriteTo(repo_.path() / "good/1/model.onnx");
  const std::string bytes = fakes::MlpModel().Serialize();
  repo_.Write("cut/1/model.onnx", bytes.substr(0, bytes.size() / 2));
  repo_.Write("empty/1/model.onnx", "");
  repo_.Write("text/1/model.onnx", "this is not a model");
  repo_.Write("plan/1/model.plan", "engine");
  Start();
  EXPECT_EQ(Run("good").size(), 4U);
  const auto failures = models_->StartupFailures();
  ASSERT_EQ(failures.size(), 4U);
  for (const StartupFailure& failure : failures) {
    EXPECT_EQ(failure.error.code, failure.model == "plan" ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument)
        << failure.model << ": " << failure.error.message;
  }
}

TEST_F(OnnxRepository, AConfigurationThatContradictsTheGraphIsRefusedNamingBoth) {
  fakes::IdentityModel(DataType::kFp32).WriteTo(repo_.path() / "m/1/model.onnx");
  repo_.Write("m/config.pbtxt", R"(max_batch_size: 4 input { name: "x" data_type: TYPE_INT64 dims: 4 })");
  Start();
  EXPECT_THAT(WhyNot("m"), AllOf(HasSubstr("TYPE_INT64 [4]"), HasSubstr("FP32 [-1,4]")));
}

TEST_F(OnnxRepository, ExternalDataStaysInTheModelsFolder) {
  fakes::WriteExternalDataModel(repo_.path() / "good/1");
  // The same model with its weights reached through a link to another model's folder.
  fakes::WriteExternalDataModel(repo_.path() / "thief/1");
  std::filesystem::remove(repo_.path() / "thief/1/weights.bin");
  std::filesystem::create_symlink(repo_.path() / "good/1/weights.bin", repo_.path() / "thief/1/weights.bin");
  Start();
  EXPECT_THAT(Run("good"), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(models_->IsReady("thief", ""));
}

TEST_F(OnnxRepository, AModelThatIsALinkWithinTheRepositoryIsLoadedFromThere) {
  fakes::WriteExternalDataModel(repo_.path() / ".store" / "a");
  std::filesystem::rename(repo_.path() / ".store/a/model.onnx", repo_.path() / ".store/a/0123abcd");
  std::filesystem::create_directories(repo_.path() / "m/1");
  std::filesystem::create_symlink("../../.store/a/0123abcd", repo_.path() / "m/1/model.onnx");
  Start();
  EXPECT_THAT(Run("m"), ElementsAre(1, 2, 3, 4)) << WhyNot("m");
}

TEST_F(OnnxRepository, AnOutputThatIsNoTensorIsLeftOutWhenTheConfigurationListsTheOthers) {
  fakes::OnnxModel model = fakes::IdentityModel(DataType::kFp32);
  model.graph.SequenceOutput("list", DataType::kFp32, {"batch", 4}).Node("SequenceConstruct", {"x"}, {"list"});
  model.WriteTo(repo_.path() / "bare/1/model.onnx");
  model.WriteTo(repo_.path() / "told/1/model.onnx");
  repo_.Write("told/config.pbtxt", R"(max_batch_size: 8 output { name: "y" })");
  model.WriteTo(repo_.path() / "asks/1/model.onnx");
  repo_.Write("asks/config.pbtxt", R"(max_batch_size: 8 output { name: "y" } output { name: "list" })");
  Start();
  EXPECT_THAT(Run("told"), ElementsAre(0, 0, 0, 0)) << WhyNot("told");
  EXPECT_THAT(WhyNot("bare"), AllOf(HasSubstr("'list'"), HasSubstr("sequence")));
  EXPECT_THAT(WhyNot("asks"), AllOf(HasSubstr("'list'"), HasSubstr("sequence")));
}

TEST_F(OnnxRepository, AnInitializerCanBeOfferedAsAnOptionalInput) {
  fakes::DefaultInputModel().WriteTo(repo_.path() / "m/1/model.onnx");
  repo_.Write("m/config.pbtxt", R"(input [{ name: "x" dims: [-1, 4] }, { name: "bias" dims: [4] optional: true }])");
  Start();
  EXPECT_THAT(Run("m"), ElementsAre(1, 2, 3, 4)) << WhyNot("m");
  EXPECT_TRUE(models_->Find("m", "").value()->signature().FindInput("bias")->optional);
}

TEST_F(OnnxRepository, AReloadToACorruptFileKeepsTheOldVersion) {
  fakes::IdentityModel(DataType::kFp32).WriteTo(repo_.path() / "m/1/model.onnx");
  Start();
  repo_.Write("m/1/model.onnx", "garbage");
  const Status reloaded = models_->Load("m", {});
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(Run("m"), ElementsAre(0, 0, 0, 0));
}

TEST_F(OnnxRepository, AModelMayComeWithTheLoadCall) {
  Start();
  ASSERT_TRUE(models_->Load(
      "m", {.config_json = "{}", .files = {{"file:1/model.onnx", fakes::IdentityModel(DataType::kFp32).Serialize()}}}));
  EXPECT_EQ(Run("m").size(), 4U);
}

TEST_F(OnnxRepository, AProviderThatTheLibraryLacksIsNamed) {
  fakes::IdentityModel(DataType::kFp32).WriteTo(repo_.path() / "m/1/model.onnx");
  repo_.Write("m/config.pbtxt", "instance_group { kind: KIND_GPU }");
  Start();
  if (models_->IsReady("m", "")) GTEST_SKIP() << "this ONNX Runtime has CUDA";
  EXPECT_EQ(models_->StartupFailures()[0].error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(WhyNot("m"), HasSubstr("cuda"));
}

}  // namespace
}  // namespace tandem::repository
