#include "runtimes/onnx/external_weights.h"

#include <map>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "runtimes/onnx/external_data.h"
#include "runtimes/onnx/readable_text.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

Status CheckServable(const OnnxFileInfo& model, const ExternalTensor& tensor) {
  const std::string name = Readable(tensor.name, 100);
  if (tensor.place == TensorPlace::kAttribute) {
    return Fail(ErrorCode::kUnsupported, "tensor '{}' is an attribute with external data, which is not served", name);
  }
  if (tensor.name.empty())
    return Invalid("a tensor with external data '{}' has no name", Readable(tensor.location, 100));
  if (model.repeated_names.contains(tensor.name)) {
    return Invalid("two tensors are called '{}', and one has external data", name);
  }
  return {};
}

// Opens each file once.
class Files {
 public:
  explicit Files(const std::filesystem::path& folder) : folder_(folder) {}

  Status Read(const ExternalTensor& tensor, std::span<std::byte> out) {
    auto file = files_.find(tensor.location);
    if (file == files_.end()) {
      TANDEM_ASSIGN(const std::filesystem::path path, ConfineLocation(folder_, tensor.location));
      TANDEM_ASSIGN(WireFile opened, WireFile::Open(path));
      file = files_.emplace(tensor.location, std::move(opened)).first;
    }
    if (auto read = file->second.ReadAt(tensor.offset, out); !read) {
      return Invalid("external data '{}': {}", Readable(tensor.location, 100), read.error().message);
    }
    return {};
  }

 private:
  const std::filesystem::path& folder_;
  std::map<std::string, WireFile> files_;
};

// Failures here are the model's: a type that ONNX Runtime does not take, or a tensor that it does not know.
Status CheckWeights(const OrtApi& api, OrtStatus* status, std::string_view what) {
  if (const auto failure = TakeFailure(api, status)) {
    return Invalid("external data of {}: {}", what, failure->message);
  }
  return {};
}

}  // namespace

Result<ExternalWeights> ExternalWeights::Add(const OrtApi& api, const std::filesystem::path& folder,
                                             const OnnxFileInfo& model, OrtSessionOptions* options) {
  ExternalWeights out;
  std::uint64_t total = 0;
  for (const ExternalTensor& tensor : model.external) {
    TANDEM_TRY(CheckServable(model, tensor));
    if (tensor.place == TensorPlace::kMainGraph) total += tensor.byte_size;
  }
  OrtMemoryInfo* raw_info = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &raw_info), "memory kind"));
  const OrtPtr<OrtMemoryInfo> info(raw_info, {api.ReleaseMemoryInfo});
  Files files(folder);
  std::vector<const char*> names;
  std::vector<const OrtValue*> values;
  for (const ExternalTensor& tensor : model.external) {
    if (tensor.byte_size == 0) continue;
    Weight weight{.buffer = AlignedBuffer(tensor.byte_size),
                  .lent = tensor.place != TensorPlace::kMainGraph || total > kMaxCopiedBytes};
    TANDEM_TRY(files.Read(tensor, weight.buffer.span()));
    const std::string name = Format("tensor '{}'", Readable(tensor.name, 100));
    OrtValue* raw = nullptr;
    TANDEM_TRY(CheckWeights(api,
                            api.CreateTensorWithDataAsOrtValue(
                                raw_info, weight.buffer.data(), weight.buffer.size(), tensor.shape.data(),
                                tensor.shape.size(), static_cast<ONNXTensorElementDataType>(tensor.element_type), &raw),
                            name));
    weight.value = {raw, OrtRelease<OrtValue>{api.ReleaseValue}};
    if (weight.lent) {
      TANDEM_TRY(CheckWeights(api, api.AddInitializer(options, tensor.name.c_str(), raw), name));
      out.lent_bytes_ += tensor.byte_size;
    } else {
      names.push_back(tensor.name.c_str());
      values.push_back(raw);
    }
    out.weights_.push_back(std::move(weight));
  }
  if (!names.empty()) {
    TANDEM_TRY(CheckWeights(api, api.AddExternalInitializers(options, names.data(), values.data(), names.size()),
                            "the model"));
  }
  return out;
}

void ExternalWeights::ReleaseCopied() {
  std::erase_if(weights_, [](const Weight& weight) { return !weight.lent; });
}

}  // namespace tandem
