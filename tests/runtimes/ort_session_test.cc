#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include <gmock/gmock.h>

#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

using fakes::OnnxModel;
using fakes::OnnxTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OrtSessionTest : public SessionTest {};

TEST_F(OrtSessionTest, EveryFixedSizeDataTypeComesBackBitForBit) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (type == DataType::kBytes) continue;
    SCOPED_TRACE(DataTypeName(type));
    const auto session = Load(fakes::IdentityModel(type));
    ASSERT_TRUE(session);
    EXPECT_EQ(session->signature().inputs, (std::vector<TensorSpec>{{"x", type, {-1, 4}, false}}));
    for (const std::int64_t batch : {1, 3, 40}) {
      std::vector<unsigned char> bytes(static_cast<std::size_t>(batch) * 4 * DataTypeSize(type));
      for (std::size_t k = 0; k < bytes.size(); ++k) {
        bytes[k] = type == DataType::kBool ? k % 2 : static_cast<unsigned char>(k * 37);
      }
      const Tensor y = Compute(*session, {MakeTensor("x", type, {batch, 4}, bytes)});
      EXPECT_EQ(y.type, type);
      EXPECT_EQ(y.shape, (Shape{batch, 4}));
      EXPECT_EQ(Values<unsigned char>(y), bytes);
    }
  }
}

TEST_F(OrtSessionTest, StringsKeepEveryByte) {
  const auto session = Load(fakes::IdentityModel(DataType::kBytes));
  const std::vector<std::string> words = {"", std::string("a\0b", 3), "grüße", std::string(100'000, 'x')};
  const Tensor y = Compute(*session, {Strings("x", {1, 4}, words)});
  EXPECT_EQ(y.shape, (Shape{1, 4}));
  EXPECT_EQ(Values<char>(y), Values<char>(Strings("x", {1, 4}, words)));
}

TEST_F(OrtSessionTest, StringsWhoseDataDoesNotFitTheirShapeAreRefused) {
  const auto session = Load(fakes::IdentityModel(DataType::kBytes));
  for (const std::size_t count : {3, 5}) {
    const auto result = Run(*session, {Strings("x", {1, 4}, std::vector<std::string>(count, "word"))});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(OrtSessionTest, EmptyTensorsAndScalarsAreServed) {
  const auto floats = Load(fakes::IdentityModel(DataType::kFp32));
  const Tensor empty = Compute(*floats, {Floats("x", {0, 4}, {})});
  EXPECT_EQ(empty.shape, (Shape{0, 4}));
  EXPECT_EQ(empty.data.size(), 0U);

  const auto strings = Load(fakes::IdentityModel(DataType::kBytes));
  EXPECT_EQ(Compute(*strings, {Strings("x", {0, 4}, {})}).data.size(), 0U);

  const auto scalar = Load(fakes::IdentityModel(DataType::kFp32, {}));
  const Tensor y = Compute(*scalar, {Floats("x", {}, {2.5F})});
  EXPECT_TRUE(y.shape.empty());
  EXPECT_THAT(Values<float>(y), ElementsAre(2.5F));
}

TEST_F(OrtSessionTest, DataAtAnyAddressGivesTheSameResult) {
  const auto session = Load(fakes::AddModel());
  AlignedBuffer body(64);
  const std::vector<float> values = {1, 2, 3, 4};
  std::memcpy(body.data() + 3, values.data(), 16);
  const Bytes bytes = Bytes::Own(std::move(body));
  const Tensor odd{"a", DataType::kFp32, {1, 4}, bytes.Part(3, 16)};
  const Tensor sum = Compute(*session, {odd, Floats("b", {1, 4}, {10, 20, 30, 40})}, "sum");
  EXPECT_THAT(Values<float>(sum), ElementsAre(11, 22, 33, 44));
}

TEST_F(OrtSessionTest, BoolBytesOtherThanZeroAndOneCountAsTrue) {
  OnnxModel model;
  model.graph.Input("x", DataType::kBool, {3}).Output("y", DataType::kBool, {3}).Node("Not", {"x"}, {"y"});
  const auto session = Load(model);
  const Tensor y = Compute(*session, {MakeTensor<unsigned char>("x", DataType::kBool, {3}, {0, 1, 255})});
  EXPECT_THAT(Values<unsigned char>(y), ElementsAre(1, 0, 0));
}

TEST_F(OrtSessionTest, OutputsComeInTheOrderAskedFor) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", 64})
      .Output("plus", DataType::kFp32, {"batch", 64})
      .Output("minus", DataType::kFp32, {"batch", 64})
      .Node("Abs", {"x"}, {"plus"})
      .Node("Neg", {"x"}, {"minus"});
  const auto session = Load(model);
  const Tensor x = Floats("x", {2, 64}, std::vector<float>(128, -3));
  const auto result = Run(*session, {x}, {"minus", "plus"});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ((*result)[0].name, "minus");
  EXPECT_EQ(Values<float>((*result)[1])[127], 3);
  const auto one = Run(*session, {x}, {"plus"});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->size(), 1U);
}

TEST_F(OrtSessionTest, OutputsOutliveTheInputsAndTheSession) {
  OnnxModel through;  // The output is the input itself, without a node between.
  through.graph.Input("x", DataType::kFp32, {"n"})
      .Output("x", DataType::kFp32, {"n"})
      .Output("z", DataType::kFp32, {"n"});
  through.graph.Node("Neg", {"x"}, {"z"});
  std::vector<Tensor> kept;
  for (const std::size_t count : {3, 1000}) {
    const auto session = Load(through);
    const std::vector<Tensor> inputs = {Floats("x", {static_cast<std::int64_t>(count)}, std::vector<float>(count, 7))};
    auto result = Run(*session, inputs, {"x", "z"});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_NE((*result)[0].data.view.data(), inputs[0].data.view.data());
    for (Tensor& tensor : *result) kept.push_back(std::move(tensor));
  }
  EXPECT_EQ(Values<float>(kept[0]), std::vector<float>(3, 7));
  EXPECT_EQ(Values<float>(kept[2]), std::vector<float>(1000, 7));
  EXPECT_EQ(Values<float>(kept[3]), std::vector<float>(1000, -7));
}

TEST_F(OrtSessionTest, ConstantOutputsAreComplete) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"n"})
      .Initializer("w", OnnxTensor::Floats({64}, std::vector<float>(64, 5)))
      .Output("y", DataType::kFp32, {64})
      .Node("Identity", {"w"}, {"y"});
  const auto session = Load(model);
  const Tensor y = Compute(*session, {Floats("x", {1}, {0})});
  EXPECT_EQ(Values<float>(y), std::vector<float>(64, 5));
}

TEST_F(OrtSessionTest, ShapesThatTheGraphMisstatesAreTakenFromTheRun) {
  // The graph says that `y` has as many rows as `x`; it has half as many.
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", 64})
      .Initializer("shape", OnnxTensor::Ints({2}, {-1, 64}))
      .Initializer("axes", OnnxTensor::Ints({1}, {1}))
      .Initializer("half", OnnxTensor::Ints({2}, {-1, 128}))
      .Initializer("starts", OnnxTensor::Ints({1}, {0}))
      .Initializer("ends", OnnxTensor::Ints({1}, {64}))
      .Output("y", DataType::kFp32, {"batch", 64})
      .Node("Reshape", {"x", "half"}, {"wide"})
      .Node("Slice", {"wide", "starts", "ends", "axes"}, {"y"});
  const auto session = Load(model);
  std::vector<float> values(4 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Tensor y = Compute(*session, {Floats("x", {4, 64}, values)});
    ASSERT_EQ(y.shape, (Shape{2, 64}));
    EXPECT_EQ(Values<float>(y)[64], 128);
  }
}

TEST_F(OrtSessionTest, OutputsOfUnknownShapeAreServed) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"n"}).Output("y", DataType::kInt64, {1, ""}).Node("NonZero", {"x"}, {"y"});
  const auto session = Load(model);
  EXPECT_EQ(session->signature().outputs[0].shape, (Shape{1, -1}));
  EXPECT_THAT(Values<std::int64_t>(Compute(*session, {Floats("x", {5}, {0, 3, 0, 0, 2})})), ElementsAre(1, 4));
  EXPECT_EQ(Compute(*session, {Floats("x", {2}, {0, 0})}).shape, (Shape{1, 0}));
}

TEST_F(OrtSessionTest, AnInputOfOnnxOptionalTypeMayBeAbsent) {
  const auto session = Load(fakes::OptionalInputModel());
  ASSERT_TRUE(session);
  ASSERT_TRUE(session->signature().FindInput("extra"));
  EXPECT_TRUE(session->signature().FindInput("extra")->optional);
  const Tensor x = Floats("x", {1, 4}, {1, 2, 3, 4});
  EXPECT_THAT(Values<float>(Compute(*session, {x, Floats("extra", {4}, {1, 1, 1, 1})})), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Values<float>(Compute(*session, {x})), ElementsAre(1, 2, 3, 4));
}

TEST_F(OrtSessionTest, AnInitializerIsAnInputOnlyWhenTheConfigurationSaysSo) {
  const Tensor x = Floats("x", {1, 4}, {0, 0, 0, 0});
  const Tensor bias = Floats("bias", {4}, {9, 9, 9, 9});
  const auto plain = Load(fakes::DefaultInputModel());
  EXPECT_EQ(plain->signature().inputs.size(), 1U);
  EXPECT_FALSE(Run(*plain, {x, bias}));
  const auto open = Load(fakes::DefaultInputModel(), {.optional_inputs = {"bias"}});
  EXPECT_EQ(open->signature().inputs.size(), 2U);
  EXPECT_THAT(Values<float>(Compute(*open, {x})), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values<float>(Compute(*open, {bias, x})), ElementsAre(9, 9, 9, 9));

  const auto wrong = TryLoad(fakes::DefaultInputModel(), {.optional_inputs = {"x"}});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("no default value"));
}

TEST_F(OrtSessionTest, MistakesInARequestNameTheInputAndStayTheCallersFault) {
  const auto session = Load(fakes::AddModel());
  const Tensor a = Floats("a", {1, 4}, {1, 2, 3, 4});
  const Tensor b = Floats("b", {1, 4}, {1, 2, 3, 4});
  const auto refused = [&](const std::vector<Tensor>& inputs, const std::vector<std::string>& outputs) {
    const auto result = Run(*session, inputs, outputs);
    if (result) return std::string("accepted");
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << result.error().message;
    return result.error().message;
  };
  EXPECT_THAT(refused({a}, {"sum"}), HasSubstr("'b' is missing"));
  EXPECT_THAT(refused({a, b, Floats("c", {1}, {1})}, {"sum"}), HasSubstr("no input 'c'"));
  EXPECT_THAT(refused({a, a}, {"sum"}), HasSubstr("'a' is given twice"));
  EXPECT_THAT(refused({a, b}, {"none"}), HasSubstr("no output 'none'"));
  EXPECT_THAT(refused({a, b}, {"sum", "sum"}), HasSubstr("'sum' is asked for twice"));
  EXPECT_THAT(refused({a, b}, {}), HasSubstr("no output is asked for"));
  EXPECT_THAT(refused({a, Floats("b", {1, 5}, {1, 2, 3, 4, 5})}, {"sum"}), HasSubstr("b"));
  EXPECT_THAT(refused({a, Floats("b", {1, 4}, {1, 2, 3})}, {"sum"}), HasSubstr("'b'"));
  EXPECT_THAT(refused({a, MakeTensor<double>("b", DataType::kFp64, {1, 4}, {1, 2, 3, 4})}, {"sum"}),
              HasSubstr("double"));
  EXPECT_THAT(Values<float>(Compute(*session, {a, b}, "sum")), ElementsAre(2, 4, 6, 8));
}

TEST_F(OrtSessionTest, DataThatTheGraphCannotComputeIsTheCallersFault) {
  OnnxModel gather;
  gather.graph.Input("i", DataType::kInt64, {"n"})
      .Initializer("table", OnnxTensor::Floats({3}, {1, 2, 3}))
      .Output("y", DataType::kFp32, {"n"})
      .Node("Gather", {"table", "i"}, {"y"});
  const auto gatherer = Load(gather);
  const auto out_of_bounds = Run(*gatherer, {MakeTensor<std::int64_t>("i", DataType::kInt64, {1}, {99})});
  ASSERT_FALSE(out_of_bounds);
  EXPECT_EQ(out_of_bounds.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(out_of_bounds.error().message, HasSubstr("99"));

  OnnxModel reshape;
  reshape.graph.Input("x", DataType::kFp32, {"n"})
      .Input("shape", DataType::kInt64, {2})
      .Output("y", DataType::kFp32, {"", ""})
      .Node("Reshape", {"x", "shape"}, {"y"});
  const auto reshaper = Load(reshape);
  const auto impossible =
      Run(*reshaper, {Floats("x", {3}, {1, 2, 3}), MakeTensor<std::int64_t>("shape", DataType::kInt64, {2}, {2, 2})});
  ASSERT_FALSE(impossible);
  EXPECT_EQ(impossible.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(impossible.error().message, HasSubstr("cannot be reshaped"));
  EXPECT_THAT(impossible.error().message, ::testing::Not(HasSubstr(".h:")));
}

TEST_F(OrtSessionTest, AbsurdSizesAreTooLargeAndTheNextRequestIsServed) {
  OnnxModel model;
  model.graph.Input("shape", DataType::kInt64, {2}).Output("y", DataType::kFp32, {"", ""});
  model.graph.Node("ConstantOfShape", {"shape"}, {"y"});
  const auto session = Load(model);
  const auto shape = [](std::int64_t a, std::int64_t b) {
    return MakeTensor<std::int64_t>("shape", DataType::kInt64, {2}, {a, b});
  };
  const auto huge = Run(*session, {shape(1'000'000, 100'000'000)});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, ErrorCode::kTooLarge) << huge.error().message;
  const auto overflow = Run(*session, {shape(std::int64_t{1} << 62, std::int64_t{1} << 62)});
  ASSERT_FALSE(overflow);
  EXPECT_EQ(overflow.error().code, ErrorCode::kTooLarge) << overflow.error().message;
  const auto negative = Run(*session, {shape(-1, 2)});
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().code, ErrorCode::kInvalidArgument) << negative.error().message;
  EXPECT_EQ(Compute(*session, {shape(2, 3)}).shape, (Shape{2, 3}));
}

TEST_F(OrtSessionTest, TheMemoryOfAHugeRunGoesBackToTheSystem) {
  OnnxModel model;
  model.graph.Input("shape", DataType::kInt64, {1})
      .Output("y", DataType::kFp32, {1})
      .Node("ConstantOfShape", {"shape"}, {"ones"}, {{"value", OnnxTensor::Floats({1}, {1})}})
      .Node("ReduceSum", {"ones"}, {"y"}, {{"keepdims", std::int64_t{1}}});
  const auto session = Load(model);
  const std::size_t before = ResidentBytes();
  const Tensor y = Compute(*session, {MakeTensor<std::int64_t>("shape", DataType::kInt64, {1}, {64 << 20})});
  EXPECT_EQ(y.shape, (Shape{1}));
  SharedEnvironment()->run_memory()->Trim();
  EXPECT_LT(ResidentBytes(), before + (std::size_t{64} << 20));  // The run took 256 MB.
}

TEST_F(OrtSessionTest, WhatARunTakesOfMemoryIsTold) {
  OnnxModel model;
  model.graph.Input("shape", DataType::kInt64, {1})
      .Output("y", DataType::kFp32, {1})
      .Node("ConstantOfShape", {"shape"}, {"ones"}, {{"value", OnnxTensor::Floats({1}, {1})}})
      .Node("ReduceSum", {"ones"}, {"y"}, {{"keepdims", std::int64_t{1}}});
  const auto runs = std::make_shared<RunBytes>();
  const auto session = Load(model, {.run_bytes = runs});
  const auto run = [&](std::int64_t mebibytes) {
    (void)Compute(*session, {MakeTensor<std::int64_t>("shape", DataType::kInt64, {1}, {mebibytes << 18})});
    return runs->Expected() >> 20;
  };
  EXPECT_EQ(run(4), 4U);
  const std::uint64_t largest = run(16);
  EXPECT_GE(largest, 16U);
  // ONNX Runtime takes at first what the last run with inputs of these shapes needed, in vain.
  EXPECT_LE(largest, 16U + 4U + 1U);
  EXPECT_EQ(run(4), largest);
}

TEST_F(OrtSessionTest, ACancelledRunEndsEarlyAndTheSessionServesOn) {
  const auto session = Load(fakes::SlowModel());
  const Tensor x = Floats("x", {1, 256}, std::vector<float>(256, 0.5F));
  const auto steps = [](std::int64_t count) {
    return MakeTensor<std::int64_t>("steps", DataType::kInt64, {1}, {count});
  };
  const std::vector<std::string> outputs = {"y"};
  CancelToken before;
  before.Cancel();
  const std::vector<Tensor> endless = {x, steps(std::int64_t{1} << 60)};
  const auto at_once = session->Run(endless, outputs, before);
  ASSERT_FALSE(at_once);
  EXPECT_EQ(at_once.error().code, ErrorCode::kCancelled);

  CancelToken during;
  std::atomic<bool> started{false};
  std::jthread canceller([&] {
    started.wait(false);
    during.Cancel();
  });
  started = true;
  started.notify_one();
  const auto cancelled = session->Run(endless, outputs, during);  // Without cancellation it would never return.
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(Compute(*session, {x, steps(3)}).shape, (Shape{1, 256}));
}

TEST_F(OrtSessionTest, ManyThreadsShareOneSession) {
  const auto session = Load(fakes::MlpModel());
  const std::vector<std::string> outputs = {"y"};
  const auto input = [](int k) { return Floats("x", {1, 64}, std::vector<float>(64, static_cast<float>(k) * 0.1F)); };
  std::vector<std::vector<float>> expected;
  for (int k = 0; k < 4; ++k) expected.push_back(Values<float>(Compute(*session, {input(k)})));
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&, k] {
        const std::vector<Tensor> inputs = {input(k)};
        for (int i = 0; i < 2000; ++i) {  // Past the point where lanes are trimmed.
          CancelToken cancel;
          const auto result = session->Run(inputs, outputs, cancel);
          if (!result || Values<float>(result->front()) != expected[static_cast<std::size_t>(k)]) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

std::chrono::nanoseconds CpuTime(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

TEST_F(OrtSessionTest, ASessionForOneThreadComputesTheSameOnTheThreadThatAsks) {
  constexpr std::int64_t kSize = 512;
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {kSize, kSize})
      .Output("y", DataType::kFp32, {kSize, kSize})
      .Node("MatMul", {"x", "x"}, {"a"})
      .Node("MatMul", {"a", "x"}, {"y"});
  const auto wide = Load(model);
  const auto narrow = Load(model, {.one_thread = true});
  std::vector<float> values(kSize * kSize);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3;
  const std::vector<Tensor> inputs = {Floats("x", {kSize, kSize}, values)};
  const auto expected = Values<float>(Compute(*wide, inputs));
  const auto elsewhere = [] { return CpuTime(CLOCK_PROCESS_CPUTIME_ID) - CpuTime(CLOCK_THREAD_CPUTIME_ID); };
  EXPECT_EQ(Values<float>(Compute(*narrow, inputs)), expected) << "small whole numbers are added exactly";
  const auto others_before = elsewhere();
  const auto mine_before = CpuTime(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < 20; ++i) Compute(*narrow, inputs);
  EXPECT_LT((elsewhere() - others_before) * 10, CpuTime(CLOCK_THREAD_CPUTIME_ID) - mine_before);
}

TEST_F(OrtSessionTest, OnlyTensorsThatAllBeginWithADimensionCalledABatchHaveABatch) {
  const auto named = [&](const fakes::OnnxDims& in, const fakes::OnnxDims& out) {
    fakes::OnnxModel model;
    model.graph.Input("x", DataType::kFp32, in).Output("y", DataType::kFp32, out).Node("Relu", {"x"}, {"y"});
    const auto session = Load(model);
    return session && session->signature().named_batch;
  };
  EXPECT_TRUE(named({"batch", 4}, {"batch", 4}));
  EXPECT_TRUE(named({"Batch_size", 4}, {"Batch_size", 4}));
  EXPECT_TRUE(named({"N", 4}, {"N", 4}));
  EXPECT_FALSE(named({"", 4}, {"", 4}));
  EXPECT_FALSE(named({"sequence", 4}, {"sequence", 4}));
  EXPECT_FALSE(named({"batch", 4}, {"other_batch", 4}));
  EXPECT_FALSE(named({4, "batch"}, {4, "batch"}));
  const auto scalar = Load(fakes::DefaultInputModel(), {.optional_inputs = {"bias"}});
  ASSERT_TRUE(scalar);
  EXPECT_FALSE(scalar->signature().named_batch);
}

}  // namespace
}  // namespace tandem
