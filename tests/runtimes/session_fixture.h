#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/inference_session.h"
#include "runtimes/onnx/session_factory.h"
#include "tests/fakes/onnx_writer.h"

namespace tandem {

// A folder that goes with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-onnx-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// One ONNX Runtime environment for all tests of a process.
inline const std::shared_ptr<const OrtEnvironment>& SharedEnvironment() {
  static const auto environment = [] {
    auto library = OrtLibrary::Open("");
    EXPECT_TRUE(library) << library.error().message;
    auto made = OrtEnvironment::Create(std::move(*library), {.intra_op_threads = 2});
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }();
  return environment;
}

template <typename T>
Tensor MakeTensor(const std::string& name, DataType type, Shape shape, const std::vector<T>& values) {
  AlignedBuffer buffer(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), buffer.size());
  return {name, type, std::move(shape), Bytes::Own(std::move(buffer))};
}

inline Tensor Floats(const std::string& name, Shape shape, const std::vector<float>& values) {
  return MakeTensor(name, DataType::kFp32, std::move(shape), values);
}

inline Tensor Strings(const std::string& name, Shape shape, const std::vector<std::string>& values) {
  std::string wire;
  for (const std::string& value : values) AppendBytesElement(value, wire);
  return MakeTensor(name, DataType::kBytes, std::move(shape), std::vector<char>(wire.begin(), wire.end()));
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.view.data(), tensor.data.size());
  return values;
}

// Resident memory in bytes.
inline std::size_t ResidentBytes() {
  std::size_t pages = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

class SessionTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<InferenceSession>> TryLoad(const fakes::OnnxModel& model, SessionSpec spec = {}) {
    spec.model = folder_.path() / "1" / "model.onnx";
    model.WriteTo(spec.model);
    return TryLoad(std::move(spec));
  }

  Result<std::unique_ptr<InferenceSession>> TryLoad(SessionSpec spec) {
    if (spec.name.empty()) spec.name = "m";
    if (spec.root.empty()) spec.root = folder_.path();
    return CreateSession(SharedEnvironment(), spec);
  }

  std::unique_ptr<InferenceSession> Load(const fakes::OnnxModel& model, SessionSpec spec = {}) {
    auto session = TryLoad(model, std::move(spec));
    if (!session) ADD_FAILURE() << session.error().message;
    return session ? std::move(*session) : nullptr;
  }

  static Result<std::vector<Tensor>> Run(InferenceSession& session, const std::vector<Tensor>& inputs,
                                         const std::vector<std::string>& outputs = {"y"}) {
    CancelToken cancel;
    return session.Run(inputs, outputs, cancel);
  }

  // The only output of a run that must succeed.
  static Tensor Compute(InferenceSession& session, const std::vector<Tensor>& inputs, const std::string& output = "y") {
    auto result = Run(session, inputs, {output});
    if (!result) {
      ADD_FAILURE() << result.error().message;
      return {};
    }
    return result->front();
  }

  TempFolder folder_;
};

}  // namespace tandem
