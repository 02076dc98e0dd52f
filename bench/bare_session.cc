#include "bench/bare_session.h"

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/clock.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/session_signature.h"

namespace tandem::bench {

Result<std::shared_ptr<const OrtEnvironment>> SharedEnvironment(BenchContext& context) {
  if (!context.environment) {
    TANDEM_ASSIGN(auto library, OrtLibrary::Open(context.ort_library));
    EnvironmentOptions options;
    options.intra_op_threads = context.threads;
    TANDEM_ASSIGN(context.environment, OrtEnvironment::Create(std::move(library), std::move(options)));
  }
  return context.environment;
}

struct BareSession::Parts {
  explicit Parts(std::shared_ptr<const OrtEnvironment> shared) : environment(std::move(shared)) {}

  // Declared first, so that it goes last.
  const std::shared_ptr<const OrtEnvironment> environment;
  OrtPtr<OrtSession> session;
  OrtPtr<OrtMemoryInfo> memory;
  ModelSignature signature;
  std::vector<Tensor> inputs;
  std::vector<OrtPtr<OrtValue>> values;
  std::vector<const OrtValue*> input_values;
  std::vector<const char*> input_names;
  std::vector<const char*> output_names;
  std::vector<OrtValue*> output_values;
};

BareSession::BareSession(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

BareSession::~BareSession() = default;

const ModelSignature& BareSession::signature() const {
  return parts_->signature;
}

Result<std::unique_ptr<BareSession>> BareSession::Load(std::shared_ptr<const OrtEnvironment> environment,
                                                       const std::filesystem::path& model, BareThreads threads,
                                                       int thread_count) {
  const OrtApi& api = environment->api();
  OrtEnv* const env = environment->handle();
  auto parts = std::make_unique<Parts>(std::move(environment));
  OrtSessionOptions* raw_options = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateSessionOptions(&raw_options), "CreateSessionOptions"));
  const OrtPtr<OrtSessionOptions> options(raw_options, {api.ReleaseSessionOptions});
  if (threads == BareThreads::kShared) {
    TANDEM_TRY(CheckOrt(api, api.DisablePerSessionThreads(raw_options), "DisablePerSessionThreads"));
  } else {
    TANDEM_TRY(CheckOrt(api, api.SetIntraOpNumThreads(raw_options, thread_count), "SetIntraOpNumThreads"));
  }
  OrtSession* session = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateSession(env, model.c_str(), raw_options, &session), "CreateSession"));
  parts->session = OrtPtr<OrtSession>(session, {api.ReleaseSession});
  OrtMemoryInfo* memory = nullptr;
  TANDEM_TRY(
      CheckOrt(api, api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), "CreateCpuMemoryInfo"));
  parts->memory = OrtPtr<OrtMemoryInfo>(memory, {api.ReleaseMemoryInfo});
  TANDEM_ASSIGN(SessionSignature signature, ReadSignature(api, session, {.name = model.filename().string()}));
  parts->signature = std::move(signature.signature);
  for (const TensorSpec& output : parts->signature.outputs) parts->output_names.push_back(output.name.c_str());
  parts->output_values.resize(parts->output_names.size());
  return std::unique_ptr<BareSession>(new BareSession(std::move(parts)));
}

Status BareSession::SetInputs(std::vector<Tensor> inputs) {
  const OrtApi& api = parts_->environment->api();
  parts_->input_names.clear();
  parts_->input_values.clear();
  parts_->values.clear();
  parts_->inputs = std::move(inputs);
  for (const Tensor& tensor : parts_->inputs) {
    OrtValue* value = nullptr;
    // ONNX Runtime reads inputs only; its interface has no const here.
    auto* data = const_cast<std::byte*>(tensor.data.view.data());
    TANDEM_TRY(
        CheckOrt(api,
                 api.CreateTensorWithDataAsOrtValue(parts_->memory.get(), data, tensor.data.size(), tensor.shape.data(),
                                                    tensor.shape.size(), ElementTypeOf(tensor.type), &value),
                 "CreateTensorWithDataAsOrtValue"));
    parts_->values.emplace_back(value, OrtRelease<OrtValue>{api.ReleaseValue});
    parts_->input_values.push_back(value);
    parts_->input_names.push_back(tensor.name.c_str());
  }
  return {};
}

Status BareSession::Run() {
  const OrtApi& api = parts_->environment->api();
  OrtStatus* const status =
      api.Run(parts_->session.get(), nullptr, parts_->input_names.data(), parts_->input_values.data(),
              parts_->input_values.size(), parts_->output_names.data(), parts_->output_names.size(),
              parts_->output_values.data());
  for (OrtValue*& value : parts_->output_values) {
    if (value != nullptr) api.ReleaseValue(value);
    value = nullptr;
  }
  if (status == nullptr) return {};
  return CheckOrt(api, status, "Run");
}

Result<loadgen::LatencyHistogram> TimeRuns(BareSession& session, std::chrono::nanoseconds warmup,
                                           std::chrono::nanoseconds window) {
  const Clock& clock = RealClock::Instance();
  loadgen::LatencyHistogram histogram;
  MonotonicTime now = clock.Now();
  const MonotonicTime begin = now + warmup;
  const MonotonicTime end = begin + window;
  while (now < end || histogram.count() == 0) {
    TANDEM_TRY(session.Run());
    const MonotonicTime done = clock.Now();
    if (now >= begin) histogram.Record(done - now);
    now = done;
  }
  return histogram;
}

Result<std::unique_ptr<BareSession>> LoadBare(BenchContext& context, const std::string& model, BareThreads threads) {
  TANDEM_ASSIGN(const auto file, ModelFile(context, model));
  TANDEM_ASSIGN(auto environment, SharedEnvironment(context));
  return BareSession::Load(std::move(environment), file, threads, context.threads);
}

}  // namespace tandem::bench
