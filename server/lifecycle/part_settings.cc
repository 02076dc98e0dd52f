#include "server/lifecycle/part_settings.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/format.h"
#include "api/base/thread_name.h"
#include "colocation/run_width.h"
#include "profiler/machine.h"
#include "runtimes/onnx/ort_library.h"
#include "runtimes/onnx/process_memory.h"
#include "runtimes/onnx/session_spec.h"
#include "server/lifecycle/training_wiring.h"
#include "server/log/log.h"

namespace tandem {

int RunThreads(const ServeOptions& o) {
  return o.threads > 0 ? o.threads : UsableCores();
}

bool ChoosesWidths(const ServeOptions& o) {
  return o.workers == 0 && RunThreads(o) > 1 && RunThreads(o) <= kMostThreads;
}

int Workers(const ServeOptions& o) {
  if (o.workers > 0) return o.workers;
  return ChoosesWidths(o) ? RunThreads(o) : 1;
}

std::vector<int> RunCores(const ServeOptions& o) {
  std::vector<int> cores = AllowedCoreNumbers();
  const bool alone = ChoosesWidths(o) || Workers(o) == 1;
  if (!o.pin_threads || !alone || cores.size() < 2 || std::ssize(cores) != RunThreads(o)) return {};
  return cores;
}

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::optional<std::chrono::microseconds> DefaultSlo(const ServeOptions& o) {
  if (o.default_slo_ms <= 0) return std::nullopt;
  const std::chrono::duration<double, std::milli> slo(o.default_slo_ms);
  return std::max(std::chrono::ceil<std::chrono::microseconds>(slo), std::chrono::microseconds(1));
}

std::optional<http::TlsOptions> Tls(const ServeOptions& o) {
  if (o.tls_cert.empty()) return std::nullopt;
  return http::TlsOptions{.certificate = o.tls_cert, .key = o.tls_key, .client_ca = o.tls_client_ca};
}

MemoryBudgets BudgetsFor(const ServeOptions& o, std::uint64_t given) {
  const MemoryAsked asked{.bound = std::min(ProcessMemoryBound(), given),
                          .threads = RunThreads(o),
                          .max_activation_bytes = o.max_activation_bytes,
                          .max_request_bytes = o.max_request_bytes,
                          .rest = o.allow_http,
                          .grpc = o.allow_grpc};
  const MemoryBudgets budgets = ShareMemory(asked);
  const auto lowered = [&](const char* flag, std::uint64_t wish, std::uint64_t got) {
    if (got >= wish) return;
    LogWarning(
        Format("{} is more than the process's memory has room for", flag),
        {{"asked", std::to_string(wish)}, {"used", std::to_string(got)}, {"memory", std::to_string(asked.bound)}});
  };
  lowered("--max-request-bytes", asked.max_request_bytes, budgets.max_request);
  lowered("--max-activation-bytes", asked.max_activation_bytes, budgets.arena);
  return budgets;
}

Result<std::shared_ptr<const OrtEnvironment>> StartOrt(const ServeOptions& o, CoreSeats& seats) {
  auto opened = OrtLibrary::Open(o.ort_library);
  if (!opened && !o.ort_library.empty()) return Invalid("--ort-library: {}", opened.error().message);
  TANDEM_ASSIGN(auto library, std::move(opened));
  // CUDA reserves addresses far beyond what it uses.
  if (!library->HasProvider("CUDAExecutionProvider")) BoundProcessMemory();
  LogInfo("ONNX Runtime loaded", {{"version", library->version()}, {"library", library->path()}});
  std::vector<int> cores = seats.cores();
  if (!cores.empty()) cores.erase(cores.begin());  // The first one is that of the thread that begins the run.
  EnvironmentOptions environment{.intra_op_threads = RunThreads(o),
                                 .cores = std::move(cores),
                                 .spin = o.spin,
                                 .max_activation_bytes = o.max_activation_bytes,
                                 .log = [](OrtSeverity severity, std::string_view text) {
                                   Log(severity >= OrtSeverity::kError ? LogLevel::kError : LogLevel::kDebug, text,
                                       {{"from", "onnxruntime"}});
                                 }};
  TANDEM_ASSIGN(auto started, OrtEnvironment::Create(std::move(library), std::move(environment)));
  seats.SeatPool(ThreadsNamed(OrtEnvironment::kPoolThreads));
  return started;
}

std::string RunSetting(const ServeOptions& o, const OrtEnvironment& ort) {
  return Format("onnxruntime {}, {} threads{}{}, {} workers, {} cores of {}", ort.library().version(), RunThreads(o),
                o.spin ? " that spin" : "", RunCores(o).empty() ? "" : " on cores of their own", Workers(o),
                AllowedCores(), CpuModel());
}

Result<repository::RepositoryOptions> RepositorySettings(const ServeOptions& o) {
  repository::RepositoryOptions settings;
  settings.roots.assign(o.model_repository.begin(), o.model_repository.end());
  settings.mode = o.model_control_mode == "poll"       ? repository::ControlMode::kPoll
                  : o.model_control_mode == "explicit" ? repository::ControlMode::kExplicit
                                                       : repository::ControlMode::kNone;
  settings.load_models = o.load_model;
  settings.poll_interval = Milliseconds(o.repository_poll_secs);
  settings.threads = ChoosesWidths(o) ? RunThreads(o) : 1;
  if (const std::filesystem::path state = StateFolder(o); !state.empty()) settings.weights_folder = state / "weights";
  for (const std::string& name : o.provider) {
    TANDEM_TRY(ParseProvider(name));
    settings.default_providers.push_back({.name = name, .options = {}});
  }
  settings.log = [](repository::LogLevel level, const std::string& text) {
    Log(level == repository::LogLevel::kError     ? LogLevel::kError
        : level == repository::LogLevel::kWarning ? LogLevel::kWarning
                                                  : LogLevel::kInfo,
        text);
  };
  return settings;
}

}  // namespace tandem
