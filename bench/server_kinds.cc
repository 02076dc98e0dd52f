#include "bench/server_kinds.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "bench/http_call.h"
#include "bench/interleave.h"
#include "bench/open_files.h"

namespace tandem::bench {
namespace {

constexpr int kMostConnections = 1'000'000;
constexpr int kFilesBesideConnections = 4096;

class Start final : public Measurement {
 public:
  explicit Start(std::string model) : model_(std::move(model)) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"ready"}; }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const override {
    const Side start{.name = "server", .sample = [&]() -> Result<Figures> {
                       TANDEM_ASSIGN(const auto server, StartServer(context, model_));
                       return Figures{{"ready", std::chrono::duration<double>(server->start_to_ready()).count()}};
                     }};
    TANDEM_ASSIGN(SeriesMap series, Interleave(context, "start", {start}));
    return SeriesMap{{"ready", std::move(series["server.ready"])}};
  }

 private:
  const std::string model_;
};

class Idle final : public Measurement {
 public:
  Idle(std::string model, int connections) : model_(std::move(model)), connections_(connections) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"resident", "private", "connections", "connection_memory"};
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  Status HoldConnections(const BenchContext& context, const ServerProcess& server, SeriesMap& series) const;

  const std::string model_;
  const int connections_;
};

void Put(SeriesMap& series, const std::string& name, double sample) {
  series[name].samples.push_back(sample);
}

Result<SeriesMap> Idle::Run(BenchContext& context, const std::set<std::string>& wanted) const {
  // For our ends of the connections; the server inherits the limit.
  AllowOpenFiles(connections_ + kFilesBesideConnections);
  context.say("idle memory");
  TANDEM_ASSIGN(const auto server, StartServer(context, model_));
  SeriesMap series;
  TANDEM_ASSIGN(const auto resident, server->MemoryBytes("VmRSS"));
  TANDEM_ASSIGN(const auto anonymous, server->MemoryBytes("RssAnon"));
  Put(series, "resident", static_cast<double>(resident));
  Put(series, "private", static_cast<double>(anonymous));
  if (wanted.contains("connections") || wanted.contains("connection_memory")) {
    TANDEM_TRY(HoldConnections(context, *server, series));
  }
  return series;
}

Status Idle::HoldConnections(const BenchContext& context, const ServerProcess& server, SeriesMap& series) const {
  context.say("idle connections");
  TANDEM_ASSIGN(const auto before, server.MemoryBytes("VmRSS"));
  std::vector<loadgen::Socket> sockets;
  for (int i = 0; i < connections_; ++i) {
    TANDEM_TRY(context.CheckStop());
    auto socket = GetAndStay(server.http_port(), "/v2/health/live");
    if (!socket) {
      context.say("connection " + std::to_string(i + 1) + ": " + socket.error().message);
      break;
    }
    sockets.push_back(std::move(*socket));
  }
  TANDEM_ASSIGN(const auto after, server.MemoryBytes("VmRSS"));
  const auto fresh = GetStatus(server.http_port(), "/v2/health/ready");
  const bool answers = fresh && *fresh == 200;
  if (!answers) context.say("a request on a fresh connection was not answered");
  // Counted only when the server still serves others beside them.
  const auto held = answers ? std::ranges::count_if(sockets, IsIdle) : 0;
  const double grown = after > before ? static_cast<double>(after - before) : 0;
  Put(series, "connections", static_cast<double>(held));
  Put(series, "connection_memory", sockets.empty() ? 0 : grown / static_cast<double>(sockets.size()));
  return {};
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseStart(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::string model, fields.TextOr("model", ""));
  return std::make_unique<Start>(std::move(model));
}

Result<std::unique_ptr<Measurement>> ParseIdle(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::string model, fields.Text("model"));
  TANDEM_ASSIGN(const int connections, fields.Whole("connections", 1, kMostConnections));
  return std::make_unique<Idle>(std::move(model), connections);
}

}  // namespace tandem::bench
