#include "server/cli/loadgen_prepare.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "api/wire/npy.h"
#include "loadgen/arrival_text.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/trace_file.h"
#include "server/cli/loadgen_spec.h"
#include "server/cli/model_describer.h"

namespace tandem::cli {
namespace {

using std::chrono::nanoseconds;

// Requests are made before the run: bounds of what a trace can make us hold.
constexpr std::size_t kMaxSizes = 64;
constexpr std::size_t kMaxPreparedBytes = std::size_t{1} << 30;

nanoseconds Seconds(double seconds) {
  return nanoseconds(std::llround(seconds * 1e9));
}

std::size_t BytesOf(const std::vector<Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.data.size();
  return bytes;
}

// Makes the load of one run, model by model. Used once.
class Preparation {
 public:
  explicit Preparation(RunOptions options) : options_(std::move(options)) {}

  Result<PreparedLoad> Make();

 private:
  // What of a model can be made without the server.
  struct Draft {
    loadgen::ArrivalSpec arrivals;
    std::vector<BatchChoice> sizes;  // More than one, or another than 1, where a trace says so.
    bool sized = false;
    std::optional<loadgen::Expectation> expect;
  };

  Status CheckTarget();
  Status SpreadTrace();
  Result<const loadgen::Trace*> TraceFile(const std::string& file);
  Result<Draft> MakeDraft(ModelOptions& model);
  Status TakeTrace(const ModelOptions& model, Draft& draft);
  static Result<loadgen::Expectation> ReadExpected(const ExpectOptions& options);
  static Status CheckExpected(const ExpectOptions& options, const loadgen::Expectation& expect,
                              const ModelSignature& signature);
  Result<loadgen::ModelLoad> MakeLoad(const ModelOptions& model, Draft draft, const ModelSignature& signature);
  Result<loadgen::WireRequest> MakeRequest(const ModelOptions& model, const ModelSignature& signature,
                                           const BatchChoice& batch);

  RunOptions options_;
  loadgen::Target target_;
  std::optional<loadgen::MetricsSource> metrics_;
  std::map<std::string, loadgen::Trace> traces_;
  std::size_t prepared_bytes_ = 0;
};

// Puts the place of a model in a specification in front of a message.
std::unexpected<Error> Of(const ModelOptions& model, const Error& error) {
  const bool named = !model.where.empty() && error.message.starts_with(model.where.substr(0, model.where.size() - 2));
  return Fail(error.code, "{}{}", named ? "" : model.where, error.message);
}

Status Preparation::CheckTarget() {
  auto target = loadgen::ParseTarget(options_.client.url, loadgen::kEveryScheme);
  if (!target) return Invalid("--url: {}", target.error().message);
  target_ = *std::move(target);
  if (options_.metrics_url.empty() && target_.grpc()) return {};
  metrics_.emplace();
  metrics_->target = target_;
  metrics_->token = options_.client.token;
  metrics_->tls = options_.client.tls;
  if (options_.metrics_url.empty()) return {};
  auto metrics = loadgen::ParseTarget(options_.metrics_url, loadgen::kHttpSchemes);
  if (!metrics) return Invalid("--metrics-url: {}", metrics.error().message);
  metrics_->target = *std::move(metrics);
  return {};
}

Result<const loadgen::Trace*> Preparation::TraceFile(const std::string& file) {
  auto found = traces_.find(file);
  if (found == traces_.end()) {
    TANDEM_ASSIGN(loadgen::Trace trace, loadgen::ReadTraceFile(file));
    found = traces_.emplace(file, std::move(trace)).first;
  }
  return &found->second;
}

// Without a model the trace says which ones are asked.
Status Preparation::SpreadTrace() {
  if (options_.models.size() != 1 || !options_.models[0].model.empty()) return {};
  const ModelOptions pattern = options_.models[0];
  constexpr std::string_view kTrace = "trace:";
  if (!pattern.arrivals.starts_with(kTrace)) return Invalid("--model is required");
  TANDEM_ASSIGN(const loadgen::Trace* const trace, TraceFile(pattern.arrivals.substr(kTrace.size())));
  if (trace->streams.size() > kMaxMixModels) {
    return Invalid("--arrivals {}: the trace has {} models; at most {} can be asked in one run", pattern.arrivals,
                   trace->streams.size(), kMaxMixModels);
  }
  options_.models.clear();
  for (const auto& stream : trace->streams) {
    if (stream->model.empty()) return Invalid("--model is required: the trace has rows without one");
    options_.models.push_back(pattern);
    options_.models.back().model = stream->model;
  }
  return {};
}

// The rows that this model replays, and the batch sizes in them.
Status Preparation::TakeTrace(const ModelOptions& model, Draft& draft) {
  const std::string& file = draft.arrivals.trace_file;
  TANDEM_ASSIGN(const loadgen::Trace* const trace, TraceFile(file));
  auto stream = trace->Find(model.model);
  if (stream == nullptr && options_.models.size() == 1) stream = trace->Find("");
  if (stream == nullptr) return Invalid("trace '{}' has no rows for model '{}'", file, Excerpt(model.model));
  if (model.batch.size != 1) {
    return Invalid("{} is {}, but the rows of trace '{}' have sizes of their own", model.batch.where, model.batch.size,
                   file);
  }
  std::set<std::uint32_t> sizes;
  for (const loadgen::TraceRow& row : stream->rows) {
    if (sizes.insert(row.size).second && sizes.size() > kMaxSizes) {
      return Invalid("trace '{}' has more than {} different sizes for model '{}'", file, kMaxSizes,
                     Excerpt(model.model));
    }
  }
  draft.arrivals.trace = std::move(stream);
  draft.sized = sizes != std::set<std::uint32_t>{1};
  draft.sizes.clear();
  for (const std::uint32_t size : sizes) {
    draft.sizes.push_back({.size = size, .where = Format("the size in trace '{}'", file)});
  }
  return {};
}

Result<loadgen::Expectation> Preparation::ReadExpected(const ExpectOptions& options) {
  loadgen::Expectation expect{.outputs = {}, .tolerance = options.tolerance, .every = options.every};
  const auto name_it = [&](const Error& error) {
    return Fail(ErrorCode::kNotFound, "{}: {}", options.where, error.message);
  };
  if (!options.npz.empty()) {
    auto read = ReadNpz(options.npz);
    if (!read) return name_it(read.error());
    if (read->empty()) return Fail(ErrorCode::kNotFound, "{}: '{}' holds no arrays", options.where, options.npz);
    expect.outputs = *std::move(read);
  }
  for (const auto& [output, file] : options.files) {
    auto read = ReadNpy(file);
    if (!read) return name_it(read.error());
    read->name = output;
    expect.outputs.push_back(*std::move(read));
  }
  return expect;
}

Result<Preparation::Draft> Preparation::MakeDraft(ModelOptions& model) {
  Draft draft;
  if (model.users && model.rate) return Invalid("--users and --rate exclude each other: a closed loop has no rate");
  const std::string kind = model.arrivals.empty() ? (model.users ? "closed" : "poisson") : model.arrivals;
  if (kind == "poisson" && !model.rate) return Invalid("say how much load: --rate, --users or --arrivals");
  TANDEM_ASSIGN(draft.arrivals, loadgen::ParseArrivals(kind, {.rate = model.rate, .users = model.users}));
  draft.sizes = {model.batch};
  if (draft.arrivals.kind == loadgen::ArrivalKind::kTrace) TANDEM_TRY(TakeTrace(model, draft));
  if (target_.grpc() && model.format == "json") {
    return Invalid("--format json is REST's; over {} tensors are binary", loadgen::SchemeName(target_.scheme));
  }
  TANDEM_TRY(ReadFiles(model.choices));
  if (!model.expect.any()) return draft;
  if (!model.expect.first && draft.sizes.size() > 1) {
    return Invalid("{}: a trace with several sizes has no one right answer; \"first\" would do", model.expect.where);
  }
  TANDEM_ASSIGN(draft.expect, ReadExpected(model.expect));
  return draft;
}

Status Preparation::CheckExpected(const ExpectOptions& options, const loadgen::Expectation& expect,
                                  const ModelSignature& signature) {
  for (const Tensor& tensor : expect.outputs) {
    const TensorSpec* const spec = signature.FindOutput(tensor.name);
    if (spec == nullptr) {
      std::string known;
      for (const TensorSpec& output : signature.outputs) known += (known.empty() ? "" : ", ") + output.name;
      return Invalid("{}: the model has no output '{}'; it has: {}", options.where, Excerpt(tensor.name), known);
    }
    if (spec->type != tensor.type) {
      return Invalid("{}: output '{}' is {}, the file holds {}", options.where, Excerpt(tensor.name),
                     DataTypeName(spec->type), DataTypeName(tensor.type));
    }
  }
  return {};
}

Result<loadgen::WireRequest> Preparation::MakeRequest(const ModelOptions& model, const ModelSignature& signature,
                                                      const BatchChoice& batch) {
  TANDEM_ASSIGN(std::vector<Tensor> inputs, MakeInputs(signature, model.choices, options_.seed, batch));
  prepared_bytes_ += BytesOf(inputs);
  if (prepared_bytes_ > kMaxPreparedBytes) {
    return Fail(ErrorCode::kTooLarge, "the requests of this run hold more than {} bytes", kMaxPreparedBytes);
  }
  const bool send_slo = model.slo_ms > 0 && model.send_slo;
  const std::string& token = options_.client.token;
  if (target_.grpc()) {
    loadgen::GrpcInferRequest request{.model = model.model, .version = model.version, .inputs = std::move(inputs)};
    if (send_slo) request.slo_ms = model.slo_ms;
    request.priority = model.priority;
    if (!token.empty()) request.metadata.emplace_back("authorization", "Bearer " + token);
    request.keep_body = model.expect.any();
    return request;
  }
  const bool json = model.format == "json";
  loadgen::InferRequestOptions about{.host = target_.host,
                                     .port = target_.port,
                                     .model = model.model,
                                     .version = model.version,
                                     .form = json ? loadgen::InferForm::kJson : loadgen::InferForm::kBinary,
                                     .binary_output = !json,
                                     .priority = model.priority};
  if (send_slo) about.headers.emplace_back("X-SLO-Ms", Format("{}", model.slo_ms));
  if (!token.empty()) about.headers.emplace_back("Authorization", "Bearer " + token);
  TANDEM_ASSIGN(loadgen::HttpRequest request, loadgen::BuildInferRequest(about, inputs));
  request.keep_body = model.expect.any();
  return request;
}

Result<loadgen::ModelLoad> Preparation::MakeLoad(const ModelOptions& model, Draft draft,
                                                 const ModelSignature& signature) {
  loadgen::ModelLoad load{.model = model.model, .request = {}, .arrivals = std::move(draft.arrivals), .slo = {}};
  load.name = model.name;
  if (model.slo_ms > 0) load.slo = nanoseconds(std::llround(model.slo_ms * 1e6));
  if (draft.expect) {
    TANDEM_TRY(CheckExpected(model.expect, *draft.expect, signature));
    load.expect = *std::move(draft.expect);
  }
  for (const BatchChoice& batch : draft.sizes) {
    TANDEM_ASSIGN(loadgen::WireRequest request, MakeRequest(model, signature, batch));
    if (draft.sized) {
      load.sizes.push_back({.batch = batch.size, .request = std::move(request)});
    } else {
      load.request = std::move(request);
      load.batch = batch.size;
    }
  }
  return load;
}

Result<PreparedLoad> Preparation::Make() {
  TANDEM_TRY(CheckTarget());
  TANDEM_TRY(SpreadTrace());
  std::vector<Draft> drafts;
  for (ModelOptions& model : options_.models) {
    auto draft = MakeDraft(model);
    if (!draft) return Of(model, draft.error());
    drafts.push_back(*std::move(draft));
  }
  TANDEM_ASSIGN(const auto describer, ModelDescriber::Connect(target_, options_.client));
  PreparedLoad prepared;
  loadgen::LoadSpec& spec = prepared.spec;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const ModelOptions& model = options_.models[i];
    const auto signature = describer->Describe(model.model, model.version);
    if (!signature) return Of(model, signature.error());
    auto load = MakeLoad(model, std::move(drafts[i]), *signature);
    if (!load) return Of(model, load.error());
    spec.models.push_back(*std::move(load));
  }
  prepared.server = describer->ServerName();
  prepared.url = options_.client.url;
  prepared.metrics = std::move(metrics_);
  prepared.percentile = options_.percentile;
  prepared.confidence = options_.confidence;
  spec.host = target_.host;
  spec.port = target_.port;
  spec.scheme = target_.scheme;
  spec.tls = options_.client.tls;
  spec.channels = options_.channels;
  spec.duration = Seconds(options_.duration);
  spec.warmup = Seconds(options_.warmup);
  spec.seed = options_.seed;
  spec.connections = options_.connections;
  spec.request_timeout = Seconds(options_.request_timeout);
  return prepared;
}

}  // namespace

Result<PreparedLoad> PrepareLoad(const LoadgenOptions& options) {
  TANDEM_ASSIGN(RunOptions run, ResolveOptions(options));
  return Preparation(std::move(run)).Make();
}

}  // namespace tandem::cli
