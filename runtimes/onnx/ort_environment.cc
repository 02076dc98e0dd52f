#include "runtimes/onnx/ort_environment.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/format.h"
#include "api/base/thread_name.h"
#include "runtimes/onnx/integer_division.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/process_memory.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

std::atomic<bool> environment_exists{false};

using LogFunction = std::function<void(OrtSeverity, std::string_view)>;

void Log(const LogFunction& log, OrtSeverity severity, std::string_view text) noexcept {
  if (!log) return;
  try {
    log(severity, Format("onnxruntime: {}", Readable(text, 1000)));
  } catch (...) {
    // A log that fails must not end an inference; there is nowhere left to report it.
  }
}

void ORT_API_CALL ForwardLog(void* param, OrtLoggingLevel level, const char* /*category*/, const char* /*log_id*/,
                             const char* /*location*/, const char* message) {
  Log(*static_cast<const LogFunction*>(param), static_cast<OrtSeverity>(level), message);
}

// y = Identity(x), serialised: ir_version, graph {node, name, input, output}, opset_import.
constexpr std::string_view kSmallestModel =
    "\x08\x08"
    "\x3a\x2b"
    "\x0a\x10\x0a\x01x\x12\x01y\x22\x08Identity"
    "\x12\x01g"
    "\x5a\x09\x0a\x01x\x12\x04\x0a\x02\x08\x01"
    "\x62\x09\x0a\x01y\x12\x04\x0a\x02\x08\x01"
    "\x42\x02\x10\x11";

// Collects what is written to std::cerr while it lives.
class CerrCapture {
 public:
  CerrCapture() : previous_(std::cerr.rdbuf(text_.rdbuf())) {}
  ~CerrCapture() { std::cerr.rdbuf(previous_); }
  CerrCapture(const CerrCapture&) = delete;
  CerrCapture& operator=(const CerrCapture&) = delete;

  [[nodiscard]] std::istream& text() { return text_; }

 private:
  std::stringstream text_;
  std::streambuf* const previous_;
};

}  // namespace

OrtEnvironment::OrtEnvironment(std::unique_ptr<const OrtLibrary> library, LogFunction log)
    : library_(std::move(library)), log_(std::move(log)) {}

OrtEnvironment::~OrtEnvironment() {
  if (trimmer_ != nullptr) api().ReleaseSession(trimmer_);
  if (env_ != nullptr) api().ReleaseEnv(env_);
  environment_exists.store(false);
}

Result<std::shared_ptr<const OrtEnvironment>> OrtEnvironment::Create(std::unique_ptr<const OrtLibrary> library,
                                                                     EnvironmentOptions options) {
  if (options.intra_op_threads < 1) {
    return Invalid("the number of inference threads is {}; it must be at least 1", options.intra_op_threads);
  }
  if (environment_exists.exchange(true)) {
    return Fail(ErrorCode::kConflict, "this process already has an ONNX Runtime environment");
  }
  InstallIntegerDivisionGuard();
  std::shared_ptr<OrtEnvironment> environment(new OrtEnvironment(std::move(library), std::move(options.log)));
  TANDEM_TRY(environment->Start(options));
  return environment;
}

Status OrtEnvironment::Start(const EnvironmentOptions& options) {
  intra_op_threads_ = options.intra_op_threads;
  spin_ = options.spin;
  const OrtApi& ort = api();
  OrtThreadingOptions* raw = nullptr;
  TANDEM_TRY(CheckOrt(ort, ort.CreateThreadingOptions(&raw), "thread pool options"));
  const OrtPtr<OrtThreadingOptions> threads(raw, {ort.ReleaseThreadingOptions});
  TANDEM_TRY(CheckOrt(ort, ort.SetGlobalIntraOpNumThreads(raw, options.intra_op_threads), "thread count"));
  TANDEM_TRY(CheckOrt(ort, ort.SetGlobalInterOpNumThreads(raw, 1), "thread count"));
  TANDEM_TRY(CheckOrt(ort, ort.SetGlobalSpinControl(raw, options.spin ? 1 : 0), "spin setting"));
  const ScopedThreadName pool_name("ort-pool");
  TANDEM_TRY(
      CheckOrt(ort,
               ort.CreateEnvWithCustomLoggerAndGlobalThreadPools(&ForwardLog, const_cast<LogFunction*>(&log_),
                                                                 ORT_LOGGING_LEVEL_WARNING, "tandem", raw, &env_),
               "start of the environment"));
  TANDEM_TRY(CheckOrt(ort, ort.DisableTelemetryEvents(env_), "telemetry setting"));
  arena_bytes_ = options.max_activation_bytes > 0 ? options.max_activation_bytes : UsableMemory() / 4 * 3;
  TANDEM_TRY(RegisterArena(arena_bytes_));
  return StartTrimmer();
}

// Debian's ONNX Runtime and its libonnx each register all operators; the second time, at the first session, writes a
// thousand lines of harmless complaint to std::cerr. So the first session is this one, with nobody listening.
Status OrtEnvironment::StartTrimmer() {
  const OrtApi& ort = api();
  CerrCapture capture;
  OrtSessionOptions* raw = nullptr;
  TANDEM_TRY(CheckOrt(ort, ort.CreateSessionOptions(&raw), "session options"));
  const OrtPtr<OrtSessionOptions> options(raw, {ort.ReleaseSessionOptions});
  TANDEM_TRY(CheckOrt(ort, ort.DisablePerSessionThreads(raw), "session options"));
  TANDEM_TRY(CheckOrt(ort, ort.AddSessionConfigEntry(raw, "session.use_env_allocators", "1"), "session options"));
  TANDEM_TRY(CheckOrt(ort,
                      ort.CreateSessionFromArray(env_, kSmallestModel.data(), kSmallestModel.size(), raw, &trimmer_),
                      "first session"));
  for (std::string line; std::getline(capture.text(), line);) {
    if (line.empty() || line.starts_with("Schema error: Trying to register schema")) continue;
    Log(log_, OrtSeverity::kWarning, line);
  }
  return {};
}

Result<WeightClaim> OrtEnvironment::ClaimWeights(std::uint64_t bytes, std::uint64_t parts) const {
  const std::uint64_t limit = arena_bytes_ / 8 * 7 / parts;  // What is left must do for the runs.
  std::uint64_t claimed = weight_bytes_.load();
  do {
    if (bytes > limit || claimed > limit - bytes) {
      return Fail(ErrorCode::kTooLarge,
                  "its weights need {} bytes; the loaded models have {} of the {} that --max-activation-bytes or the "
                  "machine leaves for weights",
                  bytes, claimed, limit);
    }
  } while (!weight_bytes_.compare_exchange_weak(claimed, claimed + bytes));
  return WeightClaim(weight_bytes_, bytes);
}

void OrtEnvironment::TrimArena() const {
  const auto trimmed = [this]() -> Status {
    const OrtApi& ort = api();
    OrtRunOptions* raw_options = nullptr;
    TANDEM_TRY(CheckOrt(ort, ort.CreateRunOptions(&raw_options), "run options"));
    const OrtPtr<OrtRunOptions> options(raw_options, {ort.ReleaseRunOptions});
    constexpr const char* kKey = "memory.enable_memory_arena_shrinkage";
    TANDEM_TRY(CheckOrt(ort, ort.AddRunConfigEntry(raw_options, kKey, "cpu:0"), "run options"));
    OrtMemoryInfo* raw_info = nullptr;
    TANDEM_TRY(CheckOrt(ort, ort.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw_info), "memory kind"));
    const OrtPtr<OrtMemoryInfo> info(raw_info, {ort.ReleaseMemoryInfo});
    float data = 0;
    OrtValue* raw_x = nullptr;
    TANDEM_TRY(CheckOrt(ort,
                        ort.CreateTensorWithDataAsOrtValue(raw_info, &data, sizeof(data), nullptr, 0,
                                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &raw_x),
                        "trim"));
    const OrtPtr<OrtValue> x(raw_x, {ort.ReleaseValue});
    const char* const input = "x";
    const char* const output = "y";
    const OrtValue* const value = raw_x;
    OrtValue* raw_y = nullptr;
    TANDEM_TRY(CheckOrt(ort, ort.Run(trimmer_, raw_options, &input, &value, 1, &output, 1, &raw_y), "trim"));
    ort.ReleaseValue(raw_y);
    return {};
  }();
  if (!trimmed) Log(log_, OrtSeverity::kWarning, trimmed.error().message);
}

Status OrtEnvironment::RegisterArena(std::uint64_t max_bytes) {
  const OrtApi& ort = api();
  OrtMemoryInfo* raw_info = nullptr;
  TANDEM_TRY(CheckOrt(ort, ort.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw_info), "memory kind"));
  const OrtPtr<OrtMemoryInfo> info(raw_info, {ort.ReleaseMemoryInfo});

  // kSameAsRequested (1): with powers of two the arena holds up to twice what was ever in use.
  constexpr std::array keys = {"max_mem", "arena_extend_strategy"};
  const std::array<std::size_t, keys.size()> values = {max_bytes, 1};
  OrtArenaCfg* raw_config = nullptr;
  TANDEM_TRY(CheckOrt(ort, ort.CreateArenaCfgV2(keys.data(), values.data(), keys.size(), &raw_config), "arena"));
  const OrtPtr<OrtArenaCfg> config(raw_config, {ort.ReleaseArenaCfg});
  return CheckOrt(ort, ort.CreateAndRegisterAllocator(env_, raw_info, raw_config), "arena");
}

}  // namespace tandem
