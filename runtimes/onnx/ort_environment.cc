#include "runtimes/onnx/ort_environment.h"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/format.h"
#include "api/base/thread_name.h"
#include "runtimes/onnx/integer_division.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/prepared_model.h"
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
  // Said whenever a model is rewritten for its sessions to share, which is for this machine and no other.
  if (std::string_view(message).starts_with("Serializing optimized model")) return;
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

// As ONNX Runtime takes them: one thread's after the other, counted from 1.
std::string AffinityText(std::span<const int> cores) {
  std::string text;
  for (const int core : cores) text += Format("{}{}", text.empty() ? "" : ";", core + 1);
  return text;
}

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
    : library_(std::move(library)), log_(std::move(log)), prepared_models_(std::make_unique<PreparedModels>()) {}

OrtEnvironment::~OrtEnvironment() {
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
  if (!options.cores.empty()) {
    const std::string cores = AffinityText(options.cores);
    TANDEM_TRY(CheckOrt(ort, ort.SetGlobalIntraOpThreadAffinity(raw, cores.c_str()), "cores of threads"));
  }
  const ScopedThreadName pool_name(kPoolThreads);
  TANDEM_TRY(
      CheckOrt(ort,
               ort.CreateEnvWithCustomLoggerAndGlobalThreadPools(&ForwardLog, const_cast<LogFunction*>(&log_),
                                                                 ORT_LOGGING_LEVEL_WARNING, "tandem", raw, &env_),
               "start of the environment"));
  TANDEM_TRY(CheckOrt(ort, ort.DisableTelemetryEvents(env_), "telemetry setting"));
  memory_bytes_ = options.max_activation_bytes > 0 ? options.max_activation_bytes : UsableMemory() / 4 * 3;
  TANDEM_TRY(StartRuns(memory_bytes_));
  return MakeFirstSession();
}

// Debian's ONNX Runtime and its libonnx each register all operators; the second time, at the first session, writes a
// thousand lines of harmless complaint to std::cerr. So the first session is this one, with nobody listening.
Status OrtEnvironment::MakeFirstSession() {
  const OrtApi& ort = api();
  CerrCapture capture;
  OrtSessionOptions* raw = nullptr;
  TANDEM_TRY(CheckOrt(ort, ort.CreateSessionOptions(&raw), "session options"));
  const OrtPtr<OrtSessionOptions> options(raw, {ort.ReleaseSessionOptions});
  TANDEM_TRY(CheckOrt(ort, ort.DisablePerSessionThreads(raw), "session options"));
  TANDEM_TRY(CheckOrt(ort, ort.AddSessionConfigEntry(raw, "session.use_env_allocators", "1"), "session options"));
  OrtSession* session = nullptr;
  TANDEM_TRY(CheckOrt(ort,
                      ort.CreateSessionFromArray(env_, kSmallestModel.data(), kSmallestModel.size(), raw, &session),
                      "first session"));
  ort.ReleaseSession(session);
  for (std::string line; std::getline(capture.text(), line);) {
    if (line.empty() || line.starts_with("Schema error: Trying to register schema")) continue;
    Log(log_, OrtSeverity::kWarning, line);
  }
  return {};
}

bool ClaimedWeights::Add(std::uint64_t bytes, std::uint64_t limit) {
  std::uint64_t claimed = bytes_.load();
  do {
    if (bytes > limit || claimed > limit - bytes) return false;
  } while (!bytes_.compare_exchange_weak(claimed, claimed + bytes));
  runs_->SetAside(bytes_.load());
  return true;
}

void ClaimedWeights::Remove(std::uint64_t bytes) {
  bytes_.fetch_sub(bytes);
  runs_->SetAside(bytes_.load());
}

Result<WeightClaim> OrtEnvironment::ClaimWeights(std::uint64_t bytes, std::uint64_t parts) const {
  const std::uint64_t limit = memory_bytes_ / 8 * 7 / parts;  // What is left must do for the runs.
  if (claimed_->Add(bytes, limit)) return WeightClaim(*claimed_, bytes);
  return Fail(ErrorCode::kTooLarge,
              "its weights need {} bytes; the loaded models have {} of the {} that --max-activation-bytes or the "
              "machine leaves for weights",
              bytes, claimed_->bytes(), limit);
}

void OrtEnvironment::Tell(std::string_view text) const {
  Log(log_, OrtSeverity::kInfo, text);
}

Status OrtEnvironment::StartRuns(std::uint64_t max_bytes) {
  TANDEM_ASSIGN(runs_, RunMemory::Make(api(), max_bytes));
  claimed_ = std::make_unique<ClaimedWeights>(runs_);
  return CheckOrt(api(), api().RegisterAllocator(env_, runs_->allocator()), "memory of runs");
}

}  // namespace tandem
