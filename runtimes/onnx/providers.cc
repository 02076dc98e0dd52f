#include "runtimes/onnx/providers.h"

#include <array>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "api/base/format.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

struct ProviderFacts {
  ProviderKind kind;
  std::string_view name;
  std::string_view ort_name;
  std::string_view advice;     // For a library without it.
  std::string_view libraries;  // For a library with it, on a machine without what it needs.
};

constexpr std::string_view kGpuAdvice =
    "start tandem with --ort-library pointing at libonnxruntime.so of the onnxruntime-gpu build";

constexpr std::array<ProviderFacts, 4> kProviders = {{
    {ProviderKind::kCpu, "cpu", "CPUExecutionProvider", "", ""},
    {ProviderKind::kOneDnn, "onednn", "DnnlExecutionProvider",
     "install Debian's libonnxruntime, which has it, or start tandem with --ort-library pointing at a build with it",
     "install libdnnl, and libonnxruntime_providers_dnnl.so beside the ONNX Runtime library"},
    {ProviderKind::kCuda, "cuda", "CUDAExecutionProvider", kGpuAdvice,
     "install the NVIDIA driver, CUDA 12 and cuDNN 9, and libonnxruntime_providers_cuda.so beside the ONNX Runtime "
     "library"},
    {ProviderKind::kTensorRt, "tensorrt", "TensorrtExecutionProvider", kGpuAdvice,
     "install the NVIDIA driver, CUDA 12, cuDNN 9 and TensorRT 10, and libonnxruntime_providers_tensorrt.so beside the "
     "ONNX Runtime library"},
}};

const ProviderFacts& Facts(ProviderKind kind) {
  return kProviders[static_cast<std::size_t>(kind)];
}

// Names and values as the C API wants them; borrows from the map.
struct OptionArrays {
  std::vector<const char*> keys;
  std::vector<const char*> values;

  explicit OptionArrays(const std::map<std::string, std::string>& options) {
    for (const auto& [key, value] : options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
};

// The library, model and provider that one call below is about.
struct Target {
  const OrtLibrary& library;
  const SessionSpec& spec;
  const ProviderSpec& provider;
  OrtSessionOptions* session;

  [[nodiscard]] Status Check(OrtStatus* status) const {
    const auto failure = TakeFailure(library.api(), status);
    if (!failure) return {};
    // The library was built with the provider, but the provider's own libraries or its device are missing.
    const bool missing = failure->message.find("Failed to load") != std::string::npos ||
                         failure->message.find("cannot open shared object") != std::string::npos;
    const std::string advice = missing ? Format("; {}", Facts(provider.kind).libraries) : "";
    return Fail(missing ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument, "model '{}': provider '{}': {}{}",
                spec.name, ProviderName(provider.kind), failure->message, advice);
  }
};

// Options whose values are addresses in this process.
bool IsAddress(std::string_view option) {
  return option == "user_compute_stream" || option == "has_user_compute_stream" || option.starts_with("gpu_external_");
}

// oneDNN computes on threads of OpenMP, which live as long as the process. ONNX Runtime unloads the provider with its
// environment, and their code would go with it.
void KeepOpenMpLoaded() {
  static_cast<void>(dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

Status AppendOneDnn(const Target& target) {
  const OrtApi& ort = target.library.api();
  OrtDnnlProviderOptions* raw = nullptr;
  TANDEM_TRY(target.Check(ort.CreateDnnlProviderOptions(&raw)));
  const OrtPtr<OrtDnnlProviderOptions> owner(raw, {ort.ReleaseDnnlProviderOptions});
  if (const OptionArrays given(target.provider.options); !given.keys.empty()) {
    TANDEM_TRY(
        target.Check(ort.UpdateDnnlProviderOptions(raw, given.keys.data(), given.values.data(), given.keys.size())));
  }
  TANDEM_TRY(target.Check(ort.SessionOptionsAppendExecutionProvider_Dnnl(target.session, raw)));
  KeepOpenMpLoaded();
  return {};
}

Status AppendCuda(const Target& target) {
  const OrtApi& ort = target.library.api();
  OrtCUDAProviderOptionsV2* raw = nullptr;
  TANDEM_TRY(target.Check(ort.CreateCUDAProviderOptions(&raw)));
  const OrtPtr<OrtCUDAProviderOptionsV2> owner(raw, {ort.ReleaseCUDAProviderOptions});
  auto options = target.provider.options;
  options.emplace("device_id", std::to_string(target.provider.device_id));
  const OptionArrays given(options);
  TANDEM_TRY(
      target.Check(ort.UpdateCUDAProviderOptions(raw, given.keys.data(), given.values.data(), given.keys.size())));
  if (target.provider.stream != nullptr) {
    TANDEM_TRY(
        target.Check(ort.UpdateCUDAProviderOptionsWithValue(raw, "user_compute_stream", target.provider.stream)));
  }
  return target.Check(ort.SessionOptionsAppendExecutionProvider_CUDA_V2(target.session, raw));
}

Status AppendTensorRt(const Target& target) {
  const OrtApi& ort = target.library.api();
  OrtTensorRTProviderOptionsV2* raw = nullptr;
  TANDEM_TRY(target.Check(ort.CreateTensorRTProviderOptions(&raw)));
  const OrtPtr<OrtTensorRTProviderOptionsV2> owner(raw, {ort.ReleaseTensorRTProviderOptions});
  auto options = target.provider.options;
  options.emplace("device_id", std::to_string(target.provider.device_id));
  const OptionArrays given(options);
  TANDEM_TRY(
      target.Check(ort.UpdateTensorRTProviderOptions(raw, given.keys.data(), given.values.data(), given.keys.size())));
  if (target.provider.stream != nullptr) {
    TANDEM_TRY(
        target.Check(ort.UpdateTensorRTProviderOptionsWithValue(raw, "user_compute_stream", target.provider.stream)));
  }
  return target.Check(ort.SessionOptionsAppendExecutionProvider_TensorRT_V2(target.session, raw));
}

std::string Joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

std::string_view ProviderName(ProviderKind kind) {
  return Facts(kind).name;
}

Result<ProviderKind> ParseProvider(std::string_view name) {
  for (const ProviderFacts& facts : kProviders) {
    if (name == facts.name) return facts.kind;
  }
  if (name == "dnnl") return ProviderKind::kOneDnn;
  if (name == "trt") return ProviderKind::kTensorRt;
  return Invalid("unknown execution provider '{}'; the choices are cpu, onednn, cuda and tensorrt",
                 Readable(name, 100));
}

Status AppendProviders(const OrtLibrary& library, const SessionSpec& spec, OrtSessionOptions* options) {
  for (const ProviderSpec& provider : spec.providers) {
    const ProviderFacts& facts = Facts(provider.kind);
    if (!library.HasProvider(facts.ort_name)) {
      return Fail(
          ErrorCode::kUnsupported,
          "model '{}' asks for the execution provider '{}', which ONNX Runtime {} ({}) does not have; it has {}; {}",
          spec.name, facts.name, library.version(), library.path(), Joined(library.providers()), facts.advice);
    }
    for (const auto& [option, value] : provider.options) {
      if (!IsAddress(option)) continue;
      return Invalid("model '{}': provider '{}' has no option '{}'", spec.name, facts.name, Readable(option, 100));
    }
    const Target target{library, spec, provider, options};
    switch (provider.kind) {
      case ProviderKind::kCpu:
        // ONNX Runtime always adds it last.
        if (!provider.options.empty()) {
          return Invalid("model '{}': provider 'cpu' has no option '{}'", spec.name,
                         Readable(provider.options.begin()->first, 100));
        }
        break;
      case ProviderKind::kOneDnn: TANDEM_TRY(AppendOneDnn(target)); break;
      case ProviderKind::kCuda: TANDEM_TRY(AppendCuda(target)); break;
      case ProviderKind::kTensorRt: TANDEM_TRY(AppendTensorRt(target)); break;
    }
  }
  return {};
}

}  // namespace tandem
