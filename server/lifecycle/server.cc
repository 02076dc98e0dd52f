#include "server/lifecycle/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include "api/base/format.h"
#include "profiler/flight_recorder.h"
#include "profiler/machine.h"
#include "runtimes/onnx/ort_environment.h"
#include "server/auth/token_check.h"
#include "server/core/server_core.h"
#include "server/grpc/grpc_server.h"
#include "server/http/http_server.h"
#include "server/http/listener.h"
#include "server/lifecycle/colocation_wiring.h"
#include "server/lifecycle/file_shares.h"
#include "server/lifecycle/log_wiring.h"
#include "server/lifecycle/memory_wiring.h"
#include "server/lifecycle/part_settings.h"
#include "server/lifecycle/training_wiring.h"
#include "server/log/log.h"
#include "server/metrics/colocation_collector.h"
#include "server/metrics/memory_collector.h"
#include "server/metrics/model_collector.h"
#include "server/metrics/process_usage.h"
#include "server/metrics/request_metrics.h"
#include "server/metrics/training_collector.h"
#include "server/repository/onnx_session_factory.h"
#include "server/repository/run_archive.h"
#include "server/rest/rest_api.h"
#include "server/version.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;

// Whoever waits for the file never sees half of it. What is not a file (a pipe, a terminal) is written to as it is.
Status WriteWhole(const std::string& path, const std::string& text) {
  std::error_code ec;
  const auto type = std::filesystem::status(path, ec).type();
  const bool in_place = type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found;
  const std::string aside = in_place ? path : Format("{}.{}", path, ::getpid());
  std::ofstream file(aside);
  file << text;
  file.close();
  if (file && !in_place) std::filesystem::rename(aside, path, ec);
  if (file && (in_place || !ec)) return {};
  if (!in_place) std::filesystem::remove(aside, ec);
  return Invalid("'{}' cannot be written", path);
}

std::optional<http::Response> RefuseStranger(const TokenCheck& tokens, const http::RequestHead& head) {
  if (tokens.Allows(head.Header("authorization"))) return std::nullopt;
  return http::ErrorResponse({ErrorCode::kUnauthenticated, "a valid bearer token is needed"});
}

std::optional<std::chrono::nanoseconds> ExpectedOf(const RunRecord& run) {
  if (!run.predicted) return std::nullopt;
  return run.predicted->typical;
}

// Libraries end the process when they get no descriptor for what a thread waits on.
Status CheckFileLimit() {
  constexpr std::size_t kFewest = 48;
  const std::size_t limit = http::RaiseFileLimit();
  const std::size_t open = ReadProcessUsage().open_fds;
  if (limit >= open + kFewest) return {};
  return Fail(ErrorCode::kUnavailable,
              "the limit on open files, {}, is too low: {} are open already, and at least {} more are needed", limit,
              open, kFewest);
}

}  // namespace

// In the order of construction; destroyed in reverse.
struct Server::Parts {
  ServeOptions options;
  ServerPorts ports;
  TokenCheck tokens;
  ServerInfo info;
  std::atomic<bool> accepting{false};
  std::atomic<bool> draining{false};
  FileShares shares;
  std::optional<MemoryParts> memory;
  std::optional<LogSettings> log_settings;
  TraceSettings trace_settings;
  std::optional<SharedRegions> regions;
  BulkThread bulk;

  std::optional<FlightRecorder> recorder;
  std::optional<Colocation> colocation;

  prometheus::Registry registry;
  std::optional<RequestMetrics> metrics;
  std::optional<ModelCollector> collector;

  std::shared_ptr<const OrtEnvironment> ort;  // Shared with every session.
  std::optional<repository::OnnxSessionFactory> sessions;
  std::optional<repository::RunArchive> runs;
  std::optional<jobs::StateLock> state_lock;  // Where training does not hold it.
  std::optional<repository::ModelRepository> repository;

  std::unique_ptr<const AdmissionPolicy> admission;
  std::optional<Dispatcher> dispatcher;
  std::optional<InferenceService> inference;
  std::unique_ptr<jobs::JobService> training;  // Null when there is none.
  std::optional<ServerCore> core;

  std::optional<rest::RestApi> rest;
  std::optional<rest::Router> metrics_router;
  std::shared_ptr<http::IoLoops> loops;  // Shared by the two HTTP servers.
  std::unique_ptr<http::HttpServer> http;
  std::unique_ptr<http::HttpServer> metrics_http;
  std::unique_ptr<GrpcServer> grpc;

  Status BuildCore();
  Status Listen();
  Status ListenHttp();
  Status ListenGrpc();
  Status LoadModels();
  Status WritePorts() const;
  [[nodiscard]] std::string MetricsText();
};

Status Server::Parts::BuildCore() {
  const RealClock& clock = RealClock::Instance();
  info.version = kVersion;
  http::SetTransportLog(LogTransport);
  log_settings.emplace(ApplyLogSettings, InitialLogSettings(options));
  recorder.emplace(options.trace_records);
  TANDEM_ASSIGN(colocation, SetUpColocation(options, clock, *recorder));
  recorder->SetWorkers(Workers(options));
  shares = ShareFiles(options.max_connections);
  TANDEM_ASSIGN(memory, SetUpMemory(options));
  regions.emplace(shares.regions);
  if (!options.token_file.empty()) {
    TANDEM_ASSIGN(tokens, TokenCheck::Load(options.token_file));
  }
  TANDEM_ASSIGN(ort, StartOrt(options, *colocation->seats));
  TANDEM_ASSIGN(auto settings, RepositorySettings(options));
  metrics.emplace(registry);
  sessions.emplace(ort);
  runs.emplace(RunSetting(options, *ort));
  settings.runs = &*runs;
  settings.bits = &colocation->arbiter->models();
  settings.count_memory = CountVersions(memory->account);
  repository.emplace(std::move(settings), *sessions);
  TANDEM_ASSIGN(admission, MakeAdmission(options.admission));
  dispatcher.emplace(clock, *admission,
                     DispatcherOptions{.workers = Workers(options),
                                       .widths = ChoosesWidths(options),
                                       .max_queued = options.max_queue,
                                       .poll_window = std::chrono::microseconds(options.busy_poll_us),
                                       .on_run =
                                           [this, &clock](const Servable& servable, const RunRecord& run) {
                                             const auto expected = ExpectedOf(run);
                                             metrics->RecordRun(servable.name(), run.elements, expected, run.took);
                                             if (expected) {
                                               colocation->runs->Add(servable.name(), clock.Now(), run.took, *expected);
                                             }
                                           },
                                       .recorder = &*recorder,
                                       .toll = colocation->toll.get(),
                                       .sign = colocation->sign.get(),
                                       .seats = colocation->seats.get()});
  inference.emplace(
      InferenceService::Parts{clock, *dispatcher, *regions, *metrics, colocation->arbiter.get(), &*recorder,
                              colocation->toll.get()},
      [this](std::string_view model, std::string_view version) { return repository->Find(model, version); },
      DefaultSlo(options), options.max_request_bytes);
  std::string training_off;
  TANDEM_ASSIGN(training, StartTraining(options, *colocation, *memory->account, *repository, clock, training_off));
  if (auto lock = KeepRuns(options, training != nullptr, *runs)) state_lock.emplace(*std::move(lock));
  core.emplace(ServerCore{.clock = clock,
                          .info = info,
                          .repository = *repository,
                          .inference = *inference,
                          .regions = *regions,
                          .log_settings = *log_settings,
                          .trace_settings = trace_settings,
                          .bulk = bulk,
                          .accepting = accepting,
                          .strict_readiness = options.strict_readiness,
                          .arbiter = *colocation->arbiter,
                          .jobs = training.get(),
                          .training_off = training_off,
                          .recorder = &*recorder,
                          .memory = memory->account.get(),
                          .turns = training ? colocation->turns.get() : nullptr});
  collector.emplace([this] { return repository->Snapshot(); },
                    [this](const Servable& s) { return dispatcher->queued(s); });
  prometheus::BuildGauge()
      .Name("tandem_build_info")
      .Help("Always 1; its labels say what runs")
      .Register(registry)
      .Add({{"version", kVersion}, {"onnxruntime", ort->library().version()}})
      .Set(1);
  return {};
}

std::string Server::Parts::MetricsText() {
  std::set<std::string, std::less<>> served;
  for (const auto& servable : repository->Snapshot()) served.insert(servable->name());
  metrics->Retain(served);
  std::vector<prometheus::MetricFamily> families = registry.Collect();
  prometheus::MetricFamily queue{
      "tandem_queue_depth", "Requests that wait for the device", prometheus::MetricType::Gauge, {}};
  queue.metric.emplace_back().gauge.value = static_cast<double>(dispatcher->queued());
  families.push_back(std::move(queue));
  prometheus::MetricFamily dropped{"tandem_log_lines_dropped_total",
                                   "Lines of the log that were dropped: nobody read them in time",
                                   prometheus::MetricType::Counter,
                                   {}};
  dropped.metric.emplace_back().counter.value = static_cast<double>(LogLinesDropped());
  families.push_back(std::move(dropped));
  if (training) {
    for (auto& family : TrainingFamilies(training->Totals())) families.push_back(std::move(family));
  }
  for (auto& family : ColocationFamilies(colocation->arbiter->State())) families.push_back(std::move(family));
  if (training) {
    for (auto& family : TurnFamilies(colocation->turns->State())) families.push_back(std::move(family));
  }
  for (auto& family : MemoryFamilies(memory->account->Map())) families.push_back(std::move(family));
  for (auto& family : collector->Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

Status Server::Parts::ListenHttp() {
  const int cores = UsableCores();
  loops = std::make_shared<http::IoLoops>(options.io_threads > 0 ? options.io_threads : (cores >= 4 ? 2 : 1),
                                          std::chrono::microseconds(options.busy_poll_us));
  http::ServerOptions settings;
  settings.loops = loops;
  settings.limits.max_body = options.max_request_bytes;
  settings.limits.max_header_bytes = options.max_header_bytes;
  settings.timeouts.header = Milliseconds(options.header_timeout_secs);
  settings.timeouts.idle = Milliseconds(options.idle_timeout_secs);
  settings.tls = Tls(options);
  if (options.allow_http) {
    rest.emplace(*core, tokens, rest::RestApi::Options{.max_body = options.max_request_bytes, .metrics = [this] {
                                                         return MetricsText();
                                                       }});
    http::ServerOptions api = settings;
    api.address = options.http_address;
    api.port = static_cast<std::uint16_t>(options.http_port);
    api.max_connections = shares.http;
    api.max_body_total = memory->budgets.rest_bodies;
    api.max_answer_total = memory->budgets.rest_answers;
    api.refuse_early = [this](const http::RequestHead& head) { return rest->Refuse(head); };
    TANDEM_ASSIGN(http, http::HttpServer::Start(std::move(api), [this](std::shared_ptr<http::Exchange> exchange) {
                    rest->Handle(std::move(exchange));
                  }));
    ports.http = http->port();
  }
  if (options.allow_metrics) {
    metrics_router.emplace(rest::MetricsRouter([this] { return MetricsText(); }));
    http::ServerOptions scrape = settings;
    scrape.address = options.metrics_address;
    scrape.port = static_cast<std::uint16_t>(options.metrics_port);
    scrape.max_connections = shares.metrics;
    scrape.limits.max_body = 64 * 1024;
    scrape.max_body_total = 1024 * 1024;
    scrape.max_answer_total = 16 * 1024 * 1024;
    scrape.refuse_early = [this](const http::RequestHead& head) { return RefuseStranger(tokens, head); };
    TANDEM_ASSIGN(metrics_http,
                  http::HttpServer::Start(std::move(scrape), [this](std::shared_ptr<http::Exchange> exchange) {
                    if (auto refusal = RefuseStranger(tokens, exchange->request().head)) {
                      return exchange->Respond(*std::move(refusal));
                    }
                    metrics_router->Dispatch(std::move(exchange));
                  }));
    ports.metrics = metrics_http->port();
  }
  return {};
}

Status Server::Parts::ListenGrpc() {
  if (!options.allow_grpc) return {};
  GrpcOptions settings;
  settings.address = options.grpc_address;
  settings.port = options.grpc_port;
  settings.max_message_bytes = options.max_request_bytes;
  settings.memory_quota_bytes = memory->budgets.grpc_buffers;
  settings.max_request_bytes_under_way = memory->budgets.grpc_requests;
  settings.max_answer_bytes_under_way = memory->budgets.grpc_answers;
  settings.max_connections = static_cast<int>(shares.grpc);
  settings.poll_window = std::chrono::microseconds(options.busy_poll_us);
  settings.tls = Tls(options);
  if (tokens.required()) {
    settings.allows = [this](std::string_view authorization) { return tokens.Allows(authorization); };
  }
  TANDEM_ASSIGN(grpc, GrpcServer::Start(std::move(settings), *core));
  ports.grpc = grpc->port();
  return {};
}

Status Server::Parts::Listen() {
  TANDEM_TRY(ListenHttp());
  TANDEM_TRY(ListenGrpc());
  TANDEM_TRY(WritePorts());
  LogInfo("listening", {{"http", std::to_string(ports.http)},
                        {"grpc", std::to_string(ports.grpc)},
                        {"metrics", std::to_string(ports.metrics)}});
  return {};
}

Status Server::Parts::WritePorts() const {
  if (options.ports_file.empty()) return {};
  const Status written = WriteWhole(options.ports_file, Format("{{\"http\":{},\"grpc\":{},\"metrics\":{}}}\n",
                                                               ports.http, ports.grpc, ports.metrics));
  if (!written) return Invalid("--ports-file {}", written.error().message);
  return {};
}

Status Server::Parts::LoadModels() {
  TANDEM_TRY(repository->Start());
  if (training) training->ModelsLoaded();
  // Each is in the log already.
  const auto failures = repository->StartupFailures();
  if (!failures.empty() && options.exit_on_error) {
    return Fail(ErrorCode::kInternal, "{} model(s) failed to load and --exit-on-error is true; the first: {}",
                failures.size(), failures.front().error.message);
  }
  accepting = true;
  // After it is set, so that a drain that begins now has the last word.
  if (draining) {
    accepting = false;
    return {};
  }
  LogInfo("ready", {{"versions", std::to_string(repository->Snapshot().size())}});
  return {};
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Server>> Server::Start(const ServeOptions& options) {
  TANDEM_TRY(CheckServeOptions(options));
  TANDEM_TRY(CheckFileLimit());
  TANDEM_TRY(CheckServeFiles(options));
  std::unique_ptr<Server> server(new Server(std::make_unique<Parts>()));
  server->parts_->options = options;
  TANDEM_TRY(server->parts_->BuildCore());
  TANDEM_TRY(server->parts_->Listen());
  return server;
}

Status Server::LoadModels() {
  return parts_->LoadModels();
}

Server::~Server() {
  parts_->accepting = false;
  if (parts_->inference) parts_->inference->StopAdmitting();
  // First those who bring work, then those who do it: their last answers still go through the inference service.
  parts_->grpc.reset();
  parts_->http.reset();
  parts_->metrics_http.reset();
  if (parts_->runs) SaveRunsNow(*parts_->runs);
  parts_->training.reset();
  parts_->bulk.Stop();
  parts_->dispatcher.reset();
}

const ServerPorts& Server::ports() const {
  return parts_->ports;
}

void Server::Rescan() {
  parts_->repository->RescanAsync([](const Status& done) {
    if (done) {
      LogInfo("model repository reread");
    } else {
      LogError("model repository could not be reread", {{"reason", done.error().message}});
    }
  });
}

void Server::SaveRuns() {
  parts_->repository->SaveRunsAsync();
}

void Server::LookAtCores() {
  parts_->colocation->seats->Look();
}

void Server::BeginDrain() {
  parts_->draining = true;
  parts_->accepting = false;
  parts_->inference->StopAdmitting();
  if (parts_->training) parts_->training->BeginDrain();
  parts_->repository->StopLoading();
}

bool Server::WaitDrained(milliseconds at_most) {
  const RealClock& clock = RealClock::Instance();
  const MonotonicTime until = clock.Now() + at_most;
  while (parts_->inference->in_flight() > 0) {
    if (clock.Now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  const auto left = [&] {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until - clock.Now()));
  };
  const bool http_done = !parts_->http || parts_->http->Drain(left());
  if (parts_->grpc) parts_->grpc->Drain(left());
  const bool training_done = !parts_->training || parts_->training->WaitDrained(left());
  return http_done && training_done;
}

}  // namespace tandem
