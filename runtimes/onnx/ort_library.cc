#include "runtimes/onnx/ort_library.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <onnxruntime/onnxruntime_c_api.h>

#include "runtimes/onnx/ort_status.h"

namespace tandem {
namespace {

constexpr std::array kDefaultNames = {"libonnxruntime.so.1.21", "libonnxruntime.so.1", "libonnxruntime.so"};
constexpr std::string_view kAdvice =
    "install libonnxruntime or point --ort-library at libonnxruntime.so of the onnxruntime or onnxruntime-gpu package";

using GetApiBase = const OrtApiBase*(ORT_API_CALL*)();

std::string LastLoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error of the loader" : text;
}

Result<void*> Load(const std::string& path) {
  if (!path.empty()) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    return Fail(ErrorCode::kUnsupported, "cannot load ONNX Runtime from '{}': {}; {}", path, LastLoaderError(),
                kAdvice);
  }
  std::string first_error;
  for (const char* name : kDefaultNames) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
    std::string error = LastLoaderError();
    if (first_error.empty()) first_error = std::move(error);
  }
  return Fail(ErrorCode::kUnsupported, "cannot find ONNX Runtime: {}; {}", first_error, kAdvice);
}

std::string FileOf(const void* symbol, const std::string& fallback) {
  Dl_info info{};
  if (dladdr(symbol, &info) != 0 && info.dli_fname != nullptr) return info.dli_fname;
  return fallback;
}

// ONNX Runtime 1.N has API version N.
std::optional<std::uint32_t> ApiVersionOf(std::string_view version) {
  if (!version.starts_with("1.")) return std::nullopt;
  version.remove_prefix(2);
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  if (error != std::errc() || end == version.data()) return std::nullopt;
  return minor;
}

Result<std::vector<std::string>> ReadProviders(const OrtApi& api) {
  char** names = nullptr;
  int count = 0;
  TANDEM_TRY(CheckOrt(api, api.GetAvailableProviders(&names, &count), "list of execution providers"));
  std::vector<std::string> providers(names, names + count);
  TANDEM_TRY(CheckOrt(api, api.ReleaseAvailableProviders(names, count), "list of execution providers"));
  return providers;
}

}  // namespace

OrtLibrary::OrtLibrary(const OrtApi* api, std::uint32_t api_version, std::string version, std::string path,
                       std::vector<std::string> providers)
    : api_(api),
      api_version_(api_version),
      version_(std::move(version)),
      path_(std::move(path)),
      providers_(std::move(providers)) {}

Result<std::unique_ptr<const OrtLibrary>> OrtLibrary::Open(const std::string& path) {
  TANDEM_ASSIGN(void* const handle, Load(path));
  void* const symbol = dlsym(handle, "OrtGetApiBase");
  if (symbol == nullptr) {
    dlclose(handle);
    return Fail(ErrorCode::kUnsupported, "'{}' is not an ONNX Runtime: it has no function OrtGetApiBase; {}", path,
                kAdvice);
  }
  const std::string file = FileOf(symbol, path);
  const OrtApiBase* const base = reinterpret_cast<GetApiBase>(symbol)();
  if (base == nullptr) return Fail(ErrorCode::kUnsupported, "'{}' is not a usable ONNX Runtime; {}", file, kAdvice);

  const char* const version_text = base->GetVersionString();
  const std::string version = version_text == nullptr ? "" : version_text;
  const std::optional<std::uint32_t> newest = ApiVersionOf(version);
  if (!newest) {
    return Fail(ErrorCode::kUnsupported, "'{}' says it is ONNX Runtime '{}'; a version 1.{} or later is needed; {}",
                file, version, kOldestOrtApi, kAdvice);
  }
  const std::uint32_t api_version = std::min<std::uint32_t>(*newest, ORT_API_VERSION);
  // Asked only for what it should have, because ONNX Runtime prints to stderr when refusing.
  const OrtApi* const api = api_version < kOldestOrtApi ? nullptr : base->GetApi(api_version);
  if (api == nullptr) {
    return Fail(ErrorCode::kUnsupported, "'{}' is ONNX Runtime {}, which is too old: 1.{} or later is needed; {}", file,
                version, kOldestOrtApi, kAdvice);
  }
  TANDEM_ASSIGN(auto providers, ReadProviders(*api));
  return std::unique_ptr<const OrtLibrary>(new OrtLibrary(api, api_version, version, file, std::move(providers)));
}

bool OrtLibrary::HasProvider(std::string_view ort_name) const {
  return std::ranges::contains(providers_, ort_name);
}

}  // namespace tandem
