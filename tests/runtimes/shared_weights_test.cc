#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtimes/onnx/packed_weights.h"
#include "runtimes/onnx/prepared_model.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using fakes::OnnxModel;
using fakes::OnnxTensor;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kWide = 512;
constexpr std::uint64_t kLayerBytes = kWide * kWide * sizeof(float);

OnnxTensor RandomWeights(std::uint32_t seed, const Shape& shape) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> values(static_cast<std::size_t>(*ElementCount(shape)));
  for (float& value : values) value = normal(random);
  return OnnxTensor::Floats(shape, values);
}

// y = relu(x·first)·second, FP32 [batch, 512]: products whose weights kernels pack.
OnnxModel TwoLayers(std::uint32_t first, std::uint32_t second) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", kWide})
      .Output("y", DataType::kFp32, {"batch", kWide})
      .Initializer("first", RandomWeights(first, {kWide, kWide}))
      .Initializer("second", RandomWeights(second, {kWide, kWide}))
      .Node("MatMul", {"x", "first"}, {"h"})
      .Node("Relu", {"h"}, {"r"})
      .Node("MatMul", {"r", "second"}, {"y"});
  return model;
}

// y = x + bias, FP32 [4, 65536]: a weight that runs read as it is.
OnnxModel LargeBias(std::uint32_t seed) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {4, 65536})
      .Output("y", DataType::kFp32, {4, 65536})
      .Initializer("bias", RandomWeights(seed, {4, 65536}))
      .Node("Add", {"x", "bias"}, {"y"});
  return model;
}

class SharedWeightsTest : public SessionTest {
 protected:
  fs::path Write(const std::string& name, const OnnxModel& model) {
    fs::path file = folder_.path() / name / "model.onnx";
    model.WriteTo(file);
    return file;
  }
  std::unique_ptr<InferenceSession> LoadShared(const fs::path& file, bool one_thread = false) {
    const fs::path scratch = folder_.path() / "scratch";
    fs::create_directories(scratch);
    auto session = TryLoad({.model = file, .one_thread = one_thread, .scratch = scratch});
    EXPECT_TRUE(session) << session.error().message;
    EXPECT_TRUE(fs::is_empty(scratch)) << "what was written there has no name any more";
    fs::remove_all(scratch);
    return session ? *std::move(session) : nullptr;
  }
  static WeightPool::Count InUse() { return SharedEnvironment()->weight_pool().InUse(); }

  static std::vector<float> Answer(InferenceSession& session, Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(*ElementCount(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 97;
    return Values<float>(Compute(session, {Floats("x", std::move(shape), values)}));
  }
};

TEST_F(SharedWeightsTest, BothSessionsOfAVersionHaveOneCopyAndComputeTheSame) {
  const fs::path file = Write("m", TwoLayers(1, 2));
  const auto own = TryLoad({.model = file});
  ASSERT_TRUE(own);
  EXPECT_FALSE((*own)->shares_weights());
  EXPECT_EQ(InUse().weights, 0U);
  const auto wide = LoadShared(file);
  EXPECT_TRUE(wide->shares_weights());
  EXPECT_EQ(InUse().bytes, 2 * kLayerBytes);
  const auto narrow = LoadShared(file, /*one_thread=*/true);
  EXPECT_TRUE(narrow->shares_weights());
  EXPECT_EQ(InUse().bytes, 2 * kLayerBytes);
  const std::vector<float> expected = Answer(**own, {3, kWide});
  EXPECT_EQ(Answer(*wide, {3, kWide}), expected);
  EXPECT_EQ(Answer(*narrow, {3, kWide}), expected);
}

TEST_F(SharedWeightsTest, VersionsShareTheLayersThatAreTheSame) {
  const auto first = LoadShared(Write("1", TwoLayers(1, 2)));
  EXPECT_EQ(InUse().bytes, 2 * kLayerBytes);
  const auto tuned = LoadShared(Write("2", TwoLayers(1, 3)));
  EXPECT_EQ(InUse().bytes, 3 * kLayerBytes);
  const auto copy = LoadShared(Write("3", TwoLayers(1, 3)));
  EXPECT_EQ(InUse().bytes, 3 * kLayerBytes);
  EXPECT_NE(Answer(*first, {1, kWide}), Answer(*tuned, {1, kWide}));
  EXPECT_EQ(Answer(*copy, {1, kWide}), Answer(*tuned, {1, kWide}));
}

TEST_F(SharedWeightsTest, AWeightGoesWithTheLastWhoHasIt) {
  auto first = LoadShared(Write("1", TwoLayers(1, 2)));
  auto second = LoadShared(Write("2", TwoLayers(1, 3)));
  const std::vector<float> expected = Answer(*second, {2, kWide});
  first.reset();
  EXPECT_EQ(InUse().bytes, 2 * kLayerBytes);
  EXPECT_EQ(Answer(*second, {2, kWide}), expected);
  second.reset();
  EXPECT_EQ(InUse().weights, 0U);
  EXPECT_EQ(SharedEnvironment()->run_memory()->reserved(), 0U) << "nothing of a session is left";
}

TEST_F(SharedWeightsTest, AFileThatIsOverwrittenDoesNotChangeAModelThatIsServed) {
  const fs::path file = Write("m", LargeBias(1));
  const auto served = LoadShared(file);
  const std::vector<float> before = Answer(*served, {4, 65536});
  Write("m", LargeBias(2));
  EXPECT_EQ(Answer(*served, {4, 65536}), before);
  const auto now = LoadShared(file);
  EXPECT_NE(Answer(*now, {4, 65536}), before);
}

TEST_F(SharedWeightsTest, AWeightThatIsAResultOutlivesItsSession) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {1})
      .Output("y", DataType::kFp32, {kWide, ""})
      .Initializer("w", RandomWeights(5, {kWide, kWide}))
      .Node("Identity", {"w"}, {"y"});
  const fs::path file = Write("m", model);
  const auto own = TryLoad({.model = file});
  ASSERT_TRUE(own) << own.error().message;
  const Tensor expected = Compute(**own, {Floats("x", {1}, {0})});
  auto shared = LoadShared(file);
  const Tensor result = Compute(*shared, {Floats("x", {1}, {0})});
  shared.reset();
  ReturnFreedMemory(*SharedEnvironment());
  EXPECT_EQ(Values<float>(result), Values<float>(expected));
}

TEST_F(SharedWeightsTest, CopiesOfAModelTakeLittleMoreThanOne) {
  constexpr int kCopies = 20;
  std::vector<std::unique_ptr<InferenceSession>> sessions;
  sessions.push_back(LoadShared(Write("first", TwoLayers(7, 8))));
  (void)Answer(*sessions.back(), {1, kWide});
  ReturnFreedMemory(*SharedEnvironment());
  const std::size_t before = ResidentBytes();
  for (int i = 0; i < kCopies; ++i) {
    sessions.push_back(LoadShared(Write(std::to_string(i), TwoLayers(7, 8)), i % 2 == 0));
    (void)Answer(*sessions.back(), {1, kWide});
  }
  ReturnFreedMemory(*SharedEnvironment());
  // Of their own they would have 2 MiB each, packed.
  EXPECT_LT(ResidentBytes(), before + kCopies * kLayerBytes);
}

TEST_F(SharedWeightsTest, UnloadingGivesTheMemoryBackToTheSystem) {
  constexpr std::size_t kModels = 8;
  std::vector<std::unique_ptr<InferenceSession>> sessions;
  const auto load = [&](std::uint32_t seed) {
    sessions.push_back(LoadShared(Write(std::to_string(seed), LargeBias(seed))));
    (void)Answer(*sessions.back(), {4, 65536});
  };
  load(100);
  sessions.clear();
  ReturnFreedMemory(*SharedEnvironment());
  const std::size_t before = ResidentBytes();
  for (std::uint32_t i = 0; i < kModels; ++i) load(i);
  const std::size_t loaded = ResidentBytes();
  EXPECT_GT(loaded, before + kModels * (std::size_t{1} << 20) / 2) << "each has a mebibyte of weights";
  sessions.clear();
  ReturnFreedMemory(*SharedEnvironment());
  EXPECT_LT(ResidentBytes(), before + (std::size_t{2} << 20));
}

TEST_F(SharedWeightsTest, WhatCannotBeSharedIsLoadedAllTheSame) {
  // A branch's weight in a file of its own: lent to ONNX Runtime, which does not say what became of it.
  fakes::WriteExternalDataModel(folder_.path() / "external");
  const auto external = LoadShared(folder_.path() / "external" / "model.onnx");
  EXPECT_EQ(Values<float>(Compute(*external, {Floats("x", {1, 4}, {0, 0, 0, 0})})), (std::vector<float>{1, 2, 3, 4}));
  // Nowhere to write to.
  const fs::path file = Write("m", TwoLayers(1, 2));
  const auto nowhere = TryLoad({.model = file, .scratch = folder_.path() / "is not there"});
  ASSERT_TRUE(nowhere) << nowhere.error().message;
  EXPECT_FALSE((*nowhere)->shares_weights());
  EXPECT_EQ(Answer(**nowhere, {1, kWide}).size(), static_cast<std::size_t>(kWide));
}

TEST_F(SharedWeightsTest, WhatIsWrongWithAModelIsSaidAsWithoutSharing) {
  OnnxModel wrong;
  wrong.graph.Input("x", DataType::kFp32, {2}).Output("y", DataType::kFp32, {2}).Node("NoSuchOperator", {"x"}, {"y"});
  const fs::path file = Write("wrong", wrong);
  fs::create_directories(folder_.path() / "scratch");
  const auto shared = TryLoad({.model = file, .scratch = folder_.path() / "scratch"});
  const auto own = TryLoad({.model = file});
  ASSERT_FALSE(shared);
  ASSERT_FALSE(own);
  EXPECT_EQ(shared.error().message, own.error().message);
  EXPECT_EQ(shared.error().code, own.error().code);
}

TEST_F(SharedWeightsTest, OperandsOfProductsAreFoundWhereNobodyElseReadsThem) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {4, 4})
      .Output("y", DataType::kFp32, {4, 4})
      .Output("shown", DataType::kFp32, {4, 4})
      .Initializer("only", RandomWeights(1, {4, 4}))
      .Initializer("read", RandomWeights(2, {4, 4}))
      .Initializer("shown", RandomWeights(3, {4, 4}))
      .Initializer("left", RandomWeights(4, {4, 4}))
      .Node("MatMul", {"x", "only"}, {"a"})
      .Node("MatMul", {"a", "read"}, {"b"})
      .Node("Add", {"b", "read"}, {"c"})
      .Node("Gemm", {"c", "shown"}, {"d"})
      .Node("MatMul", {"left", "d"}, {"y"});
  const auto found = FindPackedWeights(Write("m", model));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->contains("only"));
  for (const char* const name : {"read", "shown", "left"}) EXPECT_FALSE(found->contains(name)) << name;
}

TEST(WeightPool, OnlyTheSameBytesAreTheSameWeight) {
  WeightPool pool;
  const auto weight = [](std::byte fill, std::size_t size) {
    AlignedBuffer buffer(size);
    std::ranges::fill(buffer.span(), fill);
    return std::make_shared<const SharedWeight>(std::move(buffer));
  };
  auto first = pool.Share({weight(std::byte{1}, 100), weight(std::byte{2}, 100), weight(std::byte{1}, 100)});
  EXPECT_EQ(first[0], first[2]);
  EXPECT_NE(first[0], first[1]);
  const auto second = pool.Share({weight(std::byte{2}, 100), weight(std::byte{2}, 101)});
  EXPECT_EQ(second[0], first[1]);
  EXPECT_NE(second[1], first[1]);
  EXPECT_EQ(pool.InUse().weights, 3U);
  EXPECT_EQ(pool.InUse().bytes, 301U);
  first.clear();
  EXPECT_EQ(pool.InUse().bytes, 201U);
}

TEST(WeightPool, OneWhosePagesGoIsNotSharedByThoseThatReadIt) {
  const std::string bytes(4096, 'w');
  const int file = ::memfd_create("weights", MFD_CLOEXEC);
  ASSERT_EQ(::write(file, bytes.data(), bytes.size()), 4096);
  const auto mapped_file = MappedFile::Map(file, bytes.size());
  ::close(file);
  ASSERT_TRUE(mapped_file) << mapped_file.error().message;
  const auto mapped = [&] { return std::make_shared<const SharedWeight>(*mapped_file, (*mapped_file)->bytes()); };
  const auto in_memory = [&] {
    AlignedBuffer buffer(bytes.size());
    std::ranges::copy(std::as_bytes(std::span(bytes)), buffer.span().begin());
    return std::make_shared<const SharedWeight>(std::move(buffer));
  };
  WeightPool pool;
  const auto packed = pool.Share({mapped(), mapped()});
  EXPECT_EQ(packed[0], packed[1]);
  const auto read = pool.Share({in_memory()});
  EXPECT_FALSE(read[0]->mapped());
  EXPECT_EQ(pool.Share({in_memory()})[0], read[0]);
  EXPECT_EQ(pool.InUse().weights, 2U);
}

}  // namespace
}  // namespace tandem
