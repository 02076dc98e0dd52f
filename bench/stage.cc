#include "bench/stage.h"

#include <cstring>
#include <string>
#include <utility>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/rest_infer_decode.h"
#include "bench/load_window.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::bench {
namespace {

Figures LatencyFigures(const loadgen::LatencyHistogram& latency, double rate) {
  return {{"p50", Seconds(latency.Percentile(50))}, {"p99", Seconds(latency.Percentile(99))}, {"rate", rate}};
}

// Of things done one after the other.
Figures LoopFigures(const loadgen::LatencyHistogram& latency) {
  return LatencyFigures(latency, 1 / Seconds(latency.Mean()));
}

// A body as the server has it while it decodes: aligned, with slack behind it.
Bytes DecodableBody(std::string_view json) {
  AlignedBuffer buffer(json.size() + kJsonSlack);
  std::memset(buffer.data(), 0, buffer.size());
  std::memcpy(buffer.data(), json.data(), json.size());
  return Bytes::Own(std::move(buffer)).Part(0, json.size());
}

Result<Figures> TimeDecoding(const Bytes& body, std::chrono::nanoseconds window) {
  const Clock& clock = RealClock::Instance();
  loadgen::LatencyHistogram latency;
  MonotonicTime now = clock.Now();
  const MonotonicTime end = now + window;
  while (now < end) {
    TANDEM_TRY(DecodeRestInfer(body, std::nullopt, kJsonSlack));
    const MonotonicTime done = clock.Now();
    latency.Record(done - now);
    now = done;
  }
  const double p50 = Seconds(latency.Percentile(50));
  return Figures{{"p50", p50}, {"speed", static_cast<double>(body.size()) / p50}};
}

}  // namespace

Result<std::unique_ptr<Stage>> Stage::Set(BenchContext& context, const std::string& model, int users) {
  std::unique_ptr<Stage> stage(new Stage(context, model, users));
  TANDEM_ASSIGN(stage->bare_, LoadBare(context, model, BareThreads::kShared));
  TANDEM_ASSIGN(stage->inputs_, loadgen::RandomInputs(stage->bare_->signature(), {.seed = 1}));
  TANDEM_TRY(stage->bare_->SetInputs(stage->inputs_));
  return stage;
}

Result<Side> Stage::Add(const SideSpec& spec) {
  switch (spec.source) {
    case SideSource::kBare: return AddBare(spec);
    case SideSource::kTandem: {
      TANDEM_ASSIGN(const ServerProcess* server, Server(spec.workers));
      return AddServer(spec, server->http_port(), server->grpc_port());
    }
    case SideSource::kPeer: return AddPeer(spec);
    case SideSource::kLoopback: return AddLoopback(spec);
    case SideSource::kJsonDecoding: return AddJsonDecoding(spec);
  }
  return Fail(ErrorCode::kInternal, "a side of no kind");
}

Result<Side> Stage::AddBare(const SideSpec& spec) {
  if (spec.spinning && !spinning_) {
    TANDEM_ASSIGN(spinning_, LoadBare(context_, model_, BareThreads::kSpinning));
    TANDEM_TRY(spinning_->SetInputs(inputs_));
  }
  BareSession& session = spec.spinning ? *spinning_ : *bare_;
  return Side{.name = spec.name, .sample = [this, &session]() -> Result<Figures> {
                TANDEM_ASSIGN(const auto latency, TimeRuns(session, context_.pace.warmup, context_.pace.window));
                return LoopFigures(latency);
              }};
}

Result<loadgen::HttpRequest> Stage::RequestFor(const SideSpec& spec, int port) const {
  if (spec.protocol == SideProtocol::kRaw) {
    if (inputs_.size() != 1) {
      return Invalid("side '{}': raw bytes are for models with one input; '{}' has {}", spec.name, model_,
                     inputs_.size());
    }
    return RawRequest(port, spec.path, inputs_[0]);
  }
  const bool json = spec.protocol == SideProtocol::kRestJson;
  return loadgen::BuildInferRequest({.port = port,
                                     .model = ModelName(model_),
                                     .form = json ? loadgen::InferForm::kJson : loadgen::InferForm::kBinary,
                                     .binary_output = !json},
                                    inputs_);
}

Result<Side> Stage::AddServer(const SideSpec& spec, int http_port, int grpc_port) {
  Side side{.name = spec.name, .sample = {}};
  if (spec.protocol == SideProtocol::kGrpc) {
    side.sample = [this, grpc_port]() -> Result<Figures> {
      TANDEM_ASSIGN(const auto report, GrpcWindow(context_.pace, grpc_port, ModelName(model_), inputs_, users_));
      return LatencyFigures(report.latency, report.achieved_rate);
    };
    return side;
  }
  TANDEM_ASSIGN(auto request, RequestFor(spec, http_port));
  side.sample = [this, http_port, request = std::move(request)]() -> Result<Figures> {
    TANDEM_ASSIGN(const auto report, HttpWindow(context_.pace, http_port, request, users_));
    return LatencyFigures(report.latency, report.achieved_rate);
  };
  return side;
}

Result<Side> Stage::AddPeer(const SideSpec& spec) {
  TANDEM_ASSIGN(const PeerProcess* peer, Peer(spec.peer));
  TANDEM_ASSIGN(Side side, AddServer(spec, peer->port(), peer->grpc_port()));
  side.may_fail = true;
  side.sample = [peer, sample = std::move(side.sample), name = spec.peer]() -> Result<Figures> {
    auto figures = sample();
    if (figures) return figures;
    return Fail(figures.error().code, "peer '{}': {}{}", name, figures.error().message, peer->KeepLog());
  };
  return side;
}

Result<Side> Stage::AddLoopback(const SideSpec& spec) {
  TANDEM_ASSIGN(const auto request, RequestFor({.name = spec.name, .source = SideSource::kTandem}, 8000));
  TANDEM_ASSIGN(auto made, Loopback::Make(request.size(), spec.answer_bytes));
  Loopback& loopback = *loopbacks_.emplace_back(std::move(made));
  return Side{.name = spec.name, .sample = [this, &loopback]() -> Result<Figures> {
                TANDEM_ASSIGN(const auto latency, loopback.Time(context_.pace.warmup, context_.pace.window));
                return LoopFigures(latency);
              }};
}

Result<Side> Stage::AddJsonDecoding(const SideSpec& spec) {
  SideSpec json = spec;
  json.protocol = SideProtocol::kRestJson;
  TANDEM_ASSIGN(const auto request, RequestFor(json, 8000));
  const std::string_view head = request.head;
  const Bytes body = DecodableBody(head.substr(head.find("\r\n\r\n") + 4));
  return Side{.name = spec.name, .sample = [this, body] { return TimeDecoding(body, context_.pace.window / 2); }};
}

Result<ServerProcess*> Stage::Server(int workers) {
  auto found = servers_.find(workers);
  if (found == servers_.end()) {
    TANDEM_ASSIGN(auto server, StartServer(context_, model_, {"--workers", std::to_string(workers)}));
    found = servers_.emplace(workers, std::move(server)).first;
  }
  return found->second.get();
}

Result<PeerProcess*> Stage::Peer(const std::string& name) {
  auto found = peers_.find(name);
  if (found == peers_.end()) {
    TANDEM_ASSIGN(const PeerSpec* spec, FindPeer(context_.peers, name, "peers"));
    context_.say(Format("starting peer '{}'", name));
    found = peers_.emplace(name, PeerProcess::Start(context_, *spec, model_)).first;
  }
  if (!found->second) return std::unexpected(found->second.error());
  return found->second->get();
}

}  // namespace tandem::bench
