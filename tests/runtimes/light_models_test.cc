#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "runtimes/onnx/wire_file.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// TANDEM_ROOT is set where the environment's packages lie in another root.
const fs::path kFolder = std::string(std::getenv("TANDEM_ROOT") == nullptr ? "" : std::getenv("TANDEM_ROOT")) +
                         "/usr/share/libonnx-testdata/data/light";

// The raw_data of a TensorProto in a file of its own.
std::vector<float> ReadTensorFile(const fs::path& path) {
  auto file = WireFile::Open(path);
  if (!file) return {};
  std::vector<float> values;
  for (WireRange message = file->whole(); !message.empty();) {
    const auto field = file->Next(message);
    if (!field) return {};
    if (field->number == 9 && field->kind == WireField::Kind::kBytes) {
      values.resize(field->bytes.size() / sizeof(float));
      if (!file->ReadAt(field->bytes.begin, std::as_writable_bytes(std::span(values)))) return {};
    }
  }
  return values;
}

fs::path ModelOf(const char* name) {
  return kFolder / (std::string("light_") + name + ".onnx");
}

// ONNX's own backend test feeds these models with 0/n, 1/n, … (n-1)/n and expects the stored outputs.
class LightModelTest : public SessionTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void ComputesAsExpected(const SessionSpec& spec);
};

void LightModelTest::ComputesAsExpected(const SessionSpec& spec) {
  ASSERT_TRUE(fs::exists(spec.model)) << "libonnx-testdata is in the package list";
  const auto session = TryLoad(spec);
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ((*session)->shares_weights(), !spec.scratch.empty());
  const ModelSignature& signature = (*session)->signature();
  ASSERT_EQ(signature.inputs.size(), 1U);
  const auto count = ElementCount(signature.inputs[0].shape);
  ASSERT_TRUE(count) << "the input's shape is not fixed";
  std::vector<float> values(static_cast<std::size_t>(*count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<double>(i) / static_cast<double>(*count));
  }
  const Tensor output = Compute(**session, {Floats(signature.inputs[0].name, signature.inputs[0].shape, values)},
                                signature.outputs[0].name);
  const std::vector<float> expected = ReadTensorFile(kFolder / (std::string("light_") + GetParam() + "_output_0.pb"));
  const std::vector<float> actual = Values<float>(output);
  ASSERT_EQ(actual.size(), 1000U);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-7 + 1e-3 * std::abs(expected[i])) << "class " << i;
  }
}

TEST_P(LightModelTest, ComputesWhatOnnxsReferenceComputed) {
  ComputesAsExpected({.name = GetParam(), .model = ModelOf(GetParam()), .root = kFolder});
}

TEST_P(LightModelTest, ComputesTheSameWithWeightsThatAreShared) {
  ComputesAsExpected({.name = GetParam(), .model = ModelOf(GetParam()), .root = kFolder, .scratch = folder_.path()});
}

INSTANTIATE_TEST_SUITE_P(LibonnxTestdata, LightModelTest, ::testing::Values("squeezenet", "shufflenet", "resnet50"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem
