#include "runtimes/onnx/external_weights.h"

#include <map>
#include <string>
#include <utility>

#include "runtimes/onnx/external_data.h"
#include "runtimes/onnx/readable_text.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {
namespace {

bool IsCopied(const ExternalTensor& tensor) {
  return tensor.place == TensorPlace::kMainGraph && tensor.byte_size > 0;
}

}  // namespace

Result<ExternalWeights> ExternalWeights::Add(const OrtApi& api, const std::filesystem::path& folder,
                                             std::span<const ExternalTensor> tensors, OrtSessionOptions* options) {
  ExternalWeights weights;
  std::uint64_t total = 0;
  for (const ExternalTensor& tensor : tensors) total += IsCopied(tensor) ? tensor.byte_size : 0;
  if (total == 0 || total > kMaxBytes) return weights;

  OrtMemoryInfo* raw_info = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &raw_info), "memory kind"));
  const OrtPtr<OrtMemoryInfo> info(raw_info, {api.ReleaseMemoryInfo});
  std::map<std::string, WireFile> files;
  std::vector<const char*> names;
  std::vector<const OrtValue*> values;
  for (const ExternalTensor& tensor : tensors) {
    if (!IsCopied(tensor)) continue;
    auto file = files.find(tensor.location);
    if (file == files.end()) {
      TANDEM_ASSIGN(const std::filesystem::path path, ConfineLocation(folder, tensor.location));
      TANDEM_ASSIGN(WireFile opened, WireFile::Open(path));
      file = files.emplace(tensor.location, std::move(opened)).first;
    }
    AlignedBuffer& buffer = weights.buffers_.emplace_back(tensor.byte_size);
    if (auto read = file->second.ReadAt(tensor.offset, buffer.span()); !read) {
      return Invalid("external data '{}': {}", Readable(tensor.location, 100), read.error().message);
    }
    OrtValue* raw = nullptr;
    TANDEM_TRY(CheckOrt(api,
                        api.CreateTensorWithDataAsOrtValue(
                            raw_info, buffer.data(), buffer.size(), tensor.shape.data(), tensor.shape.size(),
                            static_cast<ONNXTensorElementDataType>(tensor.element_type), &raw),
                        "external weights"));
    weights.values_.emplace_back(raw, OrtRelease<OrtValue>{api.ReleaseValue});
    names.push_back(tensor.name.c_str());
    values.push_back(raw);
  }
  TANDEM_TRY(CheckOrt(api, api.AddExternalInitializers(options, names.data(), values.data(), names.size()),
                      "external weights"));
  return weights;
}

}  // namespace tandem
