// A library that says it is an ONNX Runtime of long ago. Loaded by ort_library_test.
#include <onnxruntime/onnxruntime_c_api.h>

namespace {

const OrtApi* ORT_API_CALL NoApi(uint32_t /*version*/) noexcept {
  return nullptr;
}
const char* ORT_API_CALL Version() noexcept {
  return "1.10.0";
}

}  // namespace

extern "C" const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) noexcept {
  static const OrtApiBase base{NoApi, Version};
  return &base;
}
