#include <gmock/gmock.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using fakes::OnnxModel;
using fakes::OnnxTensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionLoadTest : public SessionTest {
 protected:
  fs::path version_ = folder_.path() / "1";

  Error LoadFailure(const SessionSpec& spec) {
    auto session = TryLoad(spec);
    EXPECT_FALSE(session);
    return session ? Error{} : session.error();
  }

  static std::vector<float> PlusWeights(InferenceSession& session) {
    return Values<float>(Compute(session, {Floats("x", {1, 4}, {0, 0, 0, 0})}));
  }
};

TEST_F(SessionLoadTest, CorruptModelsAreRefusedNamingModelAndFile) {
  const fs::path file = version_ / "model.onnx";
  const std::string whole = fakes::MlpModel().Serialize();
  OnnxModel unknown_op;
  unknown_op.graph.Input("x", DataType::kFp32, {1}).Output("y", DataType::kFp32, {1}).Node("Frobnicate", {"x"}, {"y"});
  OnnxModel future = fakes::AddModel();
  future.ir_version = 99;
  OnnxModel no_opset = fakes::AddModel();
  no_opset.opset = 0;
  OnnxModel cyclic;
  cyclic.graph.Input("x", DataType::kFp32, {1}).Output("y", DataType::kFp32, {1});
  cyclic.graph.Node("Add", {"x", "y"}, {"z"}).Node("Neg", {"z"}, {"y"});
  for (const std::string& bytes :
       {std::string("not a model"), std::string(), whole.substr(0, whole.size() / 2), unknown_op.Serialize(),
        future.Serialize(), no_opset.Serialize(), cyclic.Serialize()}) {
    fakes::WriteFile(file, bytes);
    const Error error = LoadFailure({.name = "broken", .model = file});
    EXPECT_TRUE(error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kUnsupported) << error.message;
    EXPECT_THAT(error.message, AllOf(HasSubstr("model 'broken'"), HasSubstr("model.onnx")));
  }
}

TEST_F(SessionLoadTest, AMissingModelIsNotFound) {
  EXPECT_EQ(LoadFailure({.name = "m", .model = version_ / "model.onnx"}).code, ErrorCode::kNotFound);
}

TEST_F(SessionLoadTest, WeightsInAnExternalFileAreUsed) {
  fakes::WriteExternalDataModel(version_);
  const auto session = TryLoad({.model = version_ / "model.onnx"});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_THAT(PlusWeights(**session), ElementsAre(1, 2, 3, 4));
}

TEST_F(SessionLoadTest, OverwritingTheWeightsOfAServedModelDoesNotTouchIt) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {1})
      .Output("y", DataType::kFp32, {4096})
      .Initializer("w", DataType::kFp32, {4096}, {.location = "weights.bin", .offset = 4096, .length = 4 * 4096})
      .Node("Add", {"x", "w"}, {"y"});
  model.WriteTo(version_ / "model.onnx");
  const std::vector<float> ones(5 * 1024, 1);
  fakes::WriteFile(version_ / "weights.bin", {reinterpret_cast<const char*>(ones.data()), ones.size() * 4});
  const auto session = TryLoad({.model = version_ / "model.onnx"});
  ASSERT_TRUE(session) << session.error().message;
  fakes::WriteFile(version_ / "weights.bin", "");  // As `cp` begins: truncated in place.
  EXPECT_EQ(Values<float>(Compute(**session, {Floats("x", {1}, {1})})), std::vector<float>(4096, 2));
}

TEST_F(SessionLoadTest, OverwritingTheWeightsOfASubgraphDoesNotTouchItEither) {
  constexpr std::int64_t kSize = 64 * 1024;
  auto with = std::make_shared<fakes::OnnxGraph>("with");
  with->Initializer("w", DataType::kFp32, {kSize}, {.location = "weights.bin", .length = 4 * kSize})
      .Output("a", DataType::kFp32, {kSize})
      .Node("Add", {"x", "w"}, {"a"});
  auto without = std::make_shared<fakes::OnnxGraph>("without");
  without->Output("b", DataType::kFp32, {kSize}).Node("Neg", {"x"}, {"b"});
  OnnxModel model;
  model.graph.Input("c", DataType::kBool, {})
      .Input("x", DataType::kFp32, {kSize})
      .Output("y", DataType::kFp32, {kSize})
      .Node("If", {"c"}, {"y"},
            {{"then_branch", std::shared_ptr<const fakes::OnnxGraph>(with)},
             {"else_branch", std::shared_ptr<const fakes::OnnxGraph>(without)}});
  model.WriteTo(version_ / "model.onnx");
  const std::vector<float> ones(kSize, 1);
  fakes::WriteFile(version_ / "weights.bin", {reinterpret_cast<const char*>(ones.data()), ones.size() * 4});
  const auto session = TryLoad({.model = version_ / "model.onnx"});
  ASSERT_TRUE(session) << session.error().message;
  fakes::WriteFile(version_ / "weights.bin", "");
  const std::vector<Tensor> inputs = {MakeTensor<std::uint8_t>("c", DataType::kBool, {}, {1}),
                                      Floats("x", {kSize}, ones)};
  EXPECT_EQ(Values<float>(Compute(**session, inputs)), std::vector<float>(kSize, 2));
}

TEST_F(SessionLoadTest, ExternalWeightsThatMakeNoSenseAreTheModelsFault) {
  fakes::WriteFile(version_ / "weights.bin", std::string(64, 'w'));
  const auto code = [&](const OnnxModel& model) {
    model.WriteTo(version_ / "model.onnx");
    return LoadFailure({.model = version_ / "model.onnx"}).code;
  };
  const fakes::OnnxExternal external{.location = "weights.bin", .length = 16};
  OnnxModel twice;
  twice.graph.Input("x", DataType::kFp32, {4})
      .Output("y", DataType::kFp32, {4})
      .Initializer("w", DataType::kFp32, {4}, external)
      .Initializer("w", DataType::kFp32, {4}, external)
      .Node("Add", {"x", "w"}, {"y"});
  EXPECT_EQ(code(twice), ErrorCode::kInvalidArgument);
  OnnxModel strings;
  strings.graph.Input("x", DataType::kBytes, {1})
      .Output("y", DataType::kBytes, {2})
      .Initializer("w", DataType::kBytes, {1}, external)
      .Node("Concat", {"x", "w"}, {"y"}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(code(strings), ErrorCode::kInvalidArgument);
  for (const std::uint64_t type : {14, 15, 17, 21, 23, 40}) {  // complex, float8, uint4, float4, none
    const std::string tensor =
        fakes::WireNumber(1, 2) + fakes::WireNumber(2, type) + fakes::WireBytes(8, "w") +
        fakes::WireBytes(13, fakes::WireBytes(1, "location") + fakes::WireBytes(2, "weights.bin")) +
        fakes::WireNumber(14, 1);
    fakes::WriteFile(
        version_ / "model.onnx",
        fakes::WireNumber(1, 8) +
            fakes::WireBytes(7, fakes::WireBytes(5, tensor) + fakes::IdentityModel(DataType::kFp32).graph.Serialize()) +
            fakes::WireBytes(8, fakes::WireNumber(2, 17)));
    const auto session = TryLoad({.model = version_ / "model.onnx"});
    if (session) continue;  // Nobody uses the tensor: it may be fine.
    EXPECT_TRUE(session.error().code == ErrorCode::kInvalidArgument || session.error().code == ErrorCode::kUnsupported)
        << type << ": " << session.error().message;
  }
}

TEST_F(SessionLoadTest, ExternalDataThatLeavesTheFolderIsRefused) {
  fakes::WriteFile(folder_.path() / "secret.bin", std::string(16, 's'));
  fs::create_directories(version_);
  fs::create_symlink("../secret.bin", version_ / "link.bin");
  for (const std::string location : {"../secret.bin", "link.bin", "/etc/passwd", "*/_ORT_MEM_ADDR_/*"}) {
    OnnxModel model;
    model.graph.Input("x", DataType::kFp32, {4})
        .Output("y", DataType::kFp32, {4})
        .Initializer("w", DataType::kFp32, {4}, {.location = location})
        .Node("Add", {"x", "w"}, {"y"});
    const auto session = TryLoad(model);
    ASSERT_FALSE(session) << location;
    EXPECT_EQ(session.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(session.error().message, AllOf(HasSubstr("model 'm'"), HasSubstr("'w'"), HasSubstr(location)));
  }
}

TEST_F(SessionLoadTest, AModelFileThatIsALinkOutOfTheRootIsRefused) {
  const TempFolder outside;
  fakes::AddModel().WriteTo(outside.path() / "model.onnx");
  fs::create_directories(version_);
  fs::create_symlink(outside.path() / "model.onnx", version_ / "model.onnx");
  EXPECT_THAT(LoadFailure({.name = "m", .model = version_ / "model.onnx"}).message, HasSubstr("leads outside"));
}

TEST_F(SessionLoadTest, TypesThatTheProtocolLacksAreUnsupportedNamingTheTensor) {
  OnnxModel float8;
  float8.opset = 19;
  float8.ir_version = 9;
  float8.graph.Input("x", DataType::kFp32, {2})
      .RawOutput("tiny", 17, {2})
      .Node("Cast", {"x"}, {"tiny"}, {{"to", std::int64_t{17}}});
  OnnxModel sequence;
  sequence.graph.Input("x", DataType::kFp32, {2})
      .SequenceOutput("parts", DataType::kFp32, {1})
      .Node("SplitToSequence", {"x"}, {"parts"});
  for (const auto& [model, tensor] : {std::pair(float8, "'tiny'"), std::pair(sequence, "'parts'")}) {
    const auto session = TryLoad(model);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, ErrorCode::kUnsupported) << session.error().message;
    EXPECT_THAT(session.error().message, HasSubstr(tensor));
  }
}

TEST_F(SessionLoadTest, AProviderThatTheLibraryLacksIsUnsupportedAndSaysWhatToDo) {
  const OrtLibrary& library = SharedEnvironment()->library();
  for (const ProviderKind kind : {ProviderKind::kCuda, ProviderKind::kTensorRt}) {
    const std::string ort_name = kind == ProviderKind::kCuda ? "CUDAExecutionProvider" : "TensorrtExecutionProvider";
    if (library.HasProvider(ort_name)) GTEST_SKIP() << "this ONNX Runtime has " << ort_name;
    const auto session = TryLoad(fakes::AddModel(), {.name = "gpu_model", .providers = {{.kind = kind}}});
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(session.error().message,
                AllOf(HasSubstr("gpu_model"), HasSubstr(ProviderName(kind)), HasSubstr(library.version()),
                      HasSubstr("CPUExecutionProvider"), HasSubstr("--ort-library"), HasSubstr("onnxruntime-gpu")));
  }
}

TEST_F(SessionLoadTest, OneDnnComputesLikeTheCpu) {
  if (!SharedEnvironment()->library().HasProvider("DnnlExecutionProvider")) GTEST_SKIP() << "no oneDNN in this library";
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler provider_leaks;  // Debian's provider never frees the types of what it fuses.
#endif
  const auto cpu = Load(fakes::MlpModel(), {.providers = {{.kind = ProviderKind::kCpu}}});
  const auto one_dnn = Load(fakes::MlpModel(), {.providers = {{.kind = ProviderKind::kOneDnn}}});
  ASSERT_TRUE(cpu && one_dnn);
  const Tensor x = Floats("x", {2, 64}, std::vector<float>(128, 0.25F));
  EXPECT_THAT(Values<float>(Compute(*one_dnn, {x})),
              ::testing::Pointwise(::testing::FloatNear(1e-4F), Values<float>(Compute(*cpu, {x}))));
}

TEST_F(SessionLoadTest, UnknownProvidersAndOptionsAreErrors) {
  EXPECT_EQ(*ParseProvider("onednn"), ProviderKind::kOneDnn);
  EXPECT_EQ(*ParseProvider("tensorrt"), ProviderKind::kTensorRt);
  const auto unknown = ParseProvider("abacus");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, AllOf(HasSubstr("'abacus'"), HasSubstr("tensorrt")));
  const auto session =
      TryLoad(fakes::AddModel(), {.providers = {{.kind = ProviderKind::kCpu, .options = {{"warp_speed", "9"}}}}});
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message, HasSubstr("'warp_speed'"));
}

TEST_F(SessionLoadTest, ATensorRtEngineIsUnsupportedByThisBuild) {
  fakes::WriteFile(version_ / "model.plan", "engine");
  const Error error = LoadFailure({.name = "fast", .model = version_ / "model.plan"});
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("model 'fast' is a TensorRT engine (model.plan)"),
                                   HasSubstr("this build has no TensorRT")));
  EXPECT_EQ(LoadFailure({.name = "m", .model = version_ / "model.pt"}).code, ErrorCode::kUnsupported);
}

#ifndef TANDEM_SANITIZED  // Whose memory is not given back.
TEST_F(SessionLoadTest, LoadingAndUnloadingGivesTheMemoryBack) {
  OnnxModel model;
  const std::vector<float> weights(4 << 20, 1);
  model.graph.Input("x", DataType::kFp32, {1})
      .Initializer("w", OnnxTensor::Floats({4 << 20}, weights))
      .Output("y", DataType::kFp32, {4 << 20})
      .Node("Add", {"x", "w"}, {"y"});
  model.WriteTo(version_ / "model.onnx");
  const auto cycle = [&] {
    const auto session = TryLoad({.model = version_ / "model.onnx"});
    ASSERT_TRUE(session) << session.error().message;
    EXPECT_EQ(Compute(**session, {Floats("x", {1}, {1})}).data.size(), std::size_t{16} << 20);
  };
  // As a server has it that unloads a model.
  const auto resident = [] {
    ReturnFreedMemory(*SharedEnvironment());
    return ResidentBytes();
  };
  for (int i = 0; i < 3; ++i) cycle();
  const std::size_t before = resident();
  for (int i = 0; i < 10; ++i) cycle();
  EXPECT_LT(resident(), before + (std::size_t{8} << 20));  // Half of what one of the models has.
}
#endif

}  // namespace
}  // namespace tandem
