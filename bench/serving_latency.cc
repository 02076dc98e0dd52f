// The parts of `bench serving` that compare the server with bare ONNX Runtime.

#include <cstring>
#include <format>

#include "api/base/clock.h"
#include "api/wire/rest_infer_decode.h"
#include "bench/bare_session.h"
#include "bench/loopback.h"
#include "bench/serving_parts.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::bench {
namespace {

constexpr int kManyUsers = 16;

// About what the server's answers take, heads included.
constexpr std::size_t kTinyAnswerBytes = 600;
constexpr std::size_t kSqueezenetAnswerBytes = 4400;

double Us(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e3;
}
double Ms(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}
double Minus(double a, double b) {
  return a - b;
}
double Over(double a, double b) {
  return a / b;
}
double PercentOf(double a, double b) {
  return 100 * a / b;
}

// A model loaded bare, with the inputs that the server will be sent too.
struct Bare {
  std::unique_ptr<BareSession> session;
  std::vector<Tensor> inputs;
};

Result<Bare> LoadBare(const ServingContext& context, const std::string& model, BareThreads threads) {
  Bare bare;
  TANDEM_ASSIGN(bare.session,
                BareSession::Load(context.environment, context.ModelFile(model), threads, context.threads));
  TANDEM_ASSIGN(bare.inputs, loadgen::RandomInputs(bare.session->signature(), {.seed = 1}));
  TANDEM_TRY(bare.session->SetInputs(bare.inputs));
  return bare;
}

Sample BareP50(const ServingContext& context, BareSession& session, double (*unit)(std::chrono::nanoseconds)) {
  return [&context, &session, unit]() -> Result<double> {
    TANDEM_ASSIGN(const auto latency, TimeRuns(session, context.pace.warmup, context.pace.window));
    return unit(latency.Percentile(50));
  };
}

Sample RestP50(const ServingContext& context, int port, const loadgen::HttpRequest& request,
               double (*unit)(std::chrono::nanoseconds)) {
  return [&context, port, &request, unit]() -> Result<double> {
    TANDEM_ASSIGN(const auto report, RestWindow(context, port, request, 1));
    return unit(report.latency.Percentile(50));
  };
}

Sample LoopbackP50(const ServingContext& context, Loopback& loopback, double (*unit)(std::chrono::nanoseconds)) {
  return [&context, &loopback, unit]() -> Result<double> {
    TANDEM_ASSIGN(const auto latency, loopback.Time(context.pace.warmup, context.pace.window));
    return unit(latency.Percentile(50));
  };
}

Result<std::vector<Row>> TinyThroughput(const ServingContext& context, const ServerProcess& server,
                                        const loadgen::HttpRequest& request, const std::vector<Tensor>& inputs) {
  const Sample rest = [&]() -> Result<double> {
    TANDEM_ASSIGN(const auto report, RestWindow(context, server.http_port(), request, kManyUsers));
    return report.achieved_rate;
  };
  const Sample grpc = [&]() -> Result<double> {
    TANDEM_ASSIGN(const auto report, GrpcWindow(context, server.grpc_port(), "tiny", inputs, kManyUsers));
    return report.achieved_rate;
  };
  TANDEM_ASSIGN(const auto rates, Interleave(context, "tiny model, 16 users", context.pace.rounds, {rest, grpc}));
  std::vector<Row> rows;
  rows.push_back(MakeRow("throughput", "tiny, REST binary, 16 connections", "requests/s", rates[0],
                         {.must = 20'000, .aim = {}, .better = Better::kHigher}));
  rows.push_back(MakeRow("throughput", "tiny, gRPC, 16 calls at once", "requests/s", rates[1],
                         {.must = {}, .aim = {}, .better = Better::kHigher}));
  return rows;
}

// Decodes the request's JSON as the server does, in this process.
Sample DecodeMs(const ServingContext& context, const Bytes& body) {
  return [&context, &body]() -> Result<double> {
    const Clock& clock = RealClock::Instance();
    loadgen::LatencyHistogram latency;
    MonotonicTime now = clock.Now();
    const MonotonicTime end = now + context.pace.window / 2;
    while (now < end) {
      TANDEM_TRY(DecodeRestInfer(body, std::nullopt, kJsonSlack));
      const MonotonicTime done = clock.Now();
      latency.Record(done - now);
      now = done;
    }
    return Ms(latency.Percentile(50));
  };
}

Result<std::vector<Row>> MeasureJson(const ServingContext& context, const ServerProcess& server,
                                     const std::vector<Tensor>& inputs) {
  TANDEM_ASSIGN(const auto request, loadgen::BuildInferRequest({.port = server.http_port(),
                                                                .model = "squeezenet",
                                                                .form = loadgen::InferForm::kJson,
                                                                .binary_output = false},
                                                               inputs));
  const std::string json = request.head.substr(request.head.find("\r\n\r\n") + 4);
  AlignedBuffer buffer(json.size() + kJsonSlack);
  std::memset(buffer.data(), 0, buffer.size());
  std::memcpy(buffer.data(), json.data(), json.size());
  const Bytes body = Bytes::Own(std::move(buffer)).Part(0, json.size());

  TANDEM_ASSIGN(const auto times,
                Interleave(context, "squeezenet with JSON", context.pace.rounds,
                           {DecodeMs(context, body), RestP50(context, server.http_port(), request, Ms)}));
  std::vector<double> speeds;
  for (const double ms : times[0]) speeds.push_back(static_cast<double>(json.size()) / 1e6 / (ms / 1e3));
  std::vector<Row> rows;
  rows.push_back(MakeRow("JSON decoding",
                         std::format("150,528 floats, {:.1f} MB", static_cast<double>(json.size()) / 1e6), "MB/s",
                         speeds, {.must = 200, .aim = {}, .better = Better::kHigher}));
  rows.push_back(MakeRow("p50", "squeezenet, REST JSON, 1 connection", "ms", times[1]));
  rows.push_back(MakeRow("share of JSON decoding", "squeezenet, REST JSON, 1 connection", "%",
                         Combine(times[0], times[1], PercentOf)));
  return rows;
}

}  // namespace

Result<std::vector<Row>> MeasureTinyModel(const ServingContext& context, const ServerProcess& server) {
  TANDEM_ASSIGN(const Bare bare, LoadBare(context, "tiny", BareThreads::kShared));
  TANDEM_ASSIGN(const auto request,
                loadgen::BuildInferRequest({.port = server.http_port(), .model = "tiny"}, bare.inputs));
  const Sample grpc = [&]() -> Result<double> {
    TANDEM_ASSIGN(const auto report, GrpcWindow(context, server.grpc_port(), "tiny", bare.inputs, 1));
    return Us(report.latency.Percentile(50));
  };
  TANDEM_ASSIGN(const auto loopback, Loopback::Make(request.size(), kTinyAnswerBytes));
  TANDEM_ASSIGN(const auto p50,
                Interleave(context, "tiny model", context.pace.rounds,
                           {BareP50(context, *bare.session, Us), RestP50(context, server.http_port(), request, Us),
                            grpc, LoopbackP50(context, *loopback, Us)}));
  std::vector<Row> rows;
  rows.push_back(MakeRow("p50 over bare", "tiny, REST binary, 1 connection", "µs", Combine(p50[1], p50[0], Minus),
                         {.must = 150, .aim = 60}));
  rows.push_back(MakeRow("p50 over bare", "tiny, gRPC, 1 call at once", "µs", Combine(p50[2], p50[0], Minus),
                         {.must = 200, .aim = 60}));
  rows.push_back(MakeRow("p50", "tiny, bare ONNX Runtime", "µs", p50[0]));
  rows.push_back(MakeRow("p50", "tiny, REST binary, 1 connection", "µs", p50[1]));
  rows.push_back(MakeRow("p50", "tiny, gRPC, 1 call at once", "µs", p50[2]));
  rows.push_back(MakeRow("p50", "the bytes of tiny's REST request and answer over loopback, no server", "µs", p50[3]));
  TANDEM_ASSIGN(auto throughput, TinyThroughput(context, server, request, bare.inputs));
  std::ranges::move(throughput, std::back_inserter(rows));
  return rows;
}

Result<std::vector<Row>> MeasureSqueezenet(const ServingContext& context, const ServerProcess& server) {
  TANDEM_ASSIGN(const Bare bare, LoadBare(context, "squeezenet", BareThreads::kShared));
  TANDEM_ASSIGN(const Bare spinning, LoadBare(context, "squeezenet", BareThreads::kSpinning));
  TANDEM_ASSIGN(const auto request,
                loadgen::BuildInferRequest({.port = server.http_port(), .model = "squeezenet"}, bare.inputs));
  TANDEM_ASSIGN(const auto loopback, Loopback::Make(request.size(), kSqueezenetAnswerBytes));
  TANDEM_ASSIGN(const auto p50,
                Interleave(context, "squeezenet", context.pace.rounds,
                           {BareP50(context, *bare.session, Ms), RestP50(context, server.http_port(), request, Ms),
                            BareP50(context, *spinning.session, Ms), LoopbackP50(context, *loopback, Ms)}));
  const std::string threads = std::format("{} threads", context.threads);
  std::vector<Row> rows;
  rows.push_back(MakeRow("p50 ÷ bare", std::format("squeezenet, REST binary, {}", threads), "×",
                         Combine(p50[1], p50[0], Over), {.must = 1.05, .aim = {}}));
  rows.push_back(MakeRow("p50", std::format("squeezenet, bare ONNX Runtime, {}", threads), "ms", p50[0]));
  rows.push_back(MakeRow("p50", std::format("squeezenet, REST binary, {}", threads), "ms", p50[1]));
  rows.push_back(MakeRow("p50", std::format("squeezenet, bare with spinning threads, {}", threads), "ms", p50[2]));
  rows.push_back(
      MakeRow("p50", "the bytes of squeezenet's REST request and answer over loopback, no server", "ms", p50[3]));
  TANDEM_ASSIGN(auto json, MeasureJson(context, server, bare.inputs));
  std::ranges::move(json, std::back_inserter(rows));
  return rows;
}

}  // namespace tandem::bench
