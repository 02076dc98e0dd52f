#include <cstdio>
#include <memory>
#include <string>

#include "api/base/format.h"
#include "profiler/machine.h"
#include "runtimes/onnx/ort_library.h"
#include "server/cli/command.h"
#include "server/version.h"

namespace tandem::cli {
namespace {

void Line(const char* what, const std::string& value) {
  std::printf("%-18s %s\n", what, value.c_str());
}

void PrintProvider(const OrtLibrary& library, const char* ort_name, const char* what, const char* missing) {
  Line(what, library.HasProvider(ort_name) ? "available" : std::string("not in this library; ") + missing);
}

int Doctor(const std::string& ort_library) {
  Line("tandem", kVersion);
  Line("usable cores", std::to_string(UsableCores()));
  const auto quota = ReadCpuQuota();
  Line("CPU quota", quota ? Format("{:.2f} cores", quota->cores) : "none");
  const auto memory = ReadMemoryLimit();
  Line("memory limit", memory ? Format("{} MiB", *memory >> 20) : "none");

  const auto library = OrtLibrary::Open(ort_library);
  if (!library) {
    Line("ONNX Runtime", library.error().message);
    return kFailed;
  }
  Line("ONNX Runtime", (*library)->version() + " (" + (*library)->path() + ")");
  const char* gpu = "give --ort-library the one of the onnxruntime-gpu package";
  PrintProvider(**library, "CPUExecutionProvider", "  CPU", "");
  PrintProvider(**library, "DnnlExecutionProvider", "  oneDNN", "needs a build with oneDNN, such as Debian's");
  PrintProvider(**library, "CUDAExecutionProvider", "  CUDA", gpu);
  PrintProvider(**library, "TensorrtExecutionProvider", "  TensorRT", gpu);
  return kDone;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("doctor", "Print what this machine offers and what is missing for what");
  auto ort_library = std::make_shared<std::string>();
  command->add_option("--ort-library", *ort_library, "ONNX Runtime library to look at")->envname("TANDEM_ORT_LIBRARY");
  command->footer("Example:\n  tandem doctor");
  command->callback([ort_library, &exit_code] { exit_code = Doctor(*ort_library); });
}

void AddVersionCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Example:\n  tandem version");
  command->callback([&exit_code] {
    std::printf("tandem %s\n", kVersion);
    exit_code = kDone;
  });
}

}  // namespace tandem::cli
