// The parts of `bench serving` that measure what a server costs while nobody asks for anything.

#include <algorithm>

#include <sys/resource.h>

#include "bench/http_call.h"
#include "bench/serving_parts.h"

namespace tandem::bench {
namespace {

constexpr double kMegabyte = 1e6;

// For our ends of the connections. The server has its own limit, inherited from us.
void AllowManyFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlimit wanted{.rlim_cur = std::max<rlim_t>(limit.rlim_max, kIdleConnections + 4096),
                      .rlim_max = std::max<rlim_t>(limit.rlim_max, kIdleConnections + 4096)};
  if (setrlimit(RLIMIT_NOFILE, &wanted) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<std::vector<Row>> MeasureStart(const ServingContext& context) {
  // Before the first server is made, so that it inherits the limit.
  AllowManyFiles();
  const Sample start = [&]() -> Result<double> {
    TANDEM_ASSIGN(const auto server, context.StartServer("empty"));
    return std::chrono::duration<double>(server->start_to_ready()).count();
  };
  TANDEM_ASSIGN(const auto seconds, Interleave(context, "start", context.pace.starts, {start}));
  return std::vector<Row>{MakeRow("start to ready", "no models", "s", seconds[0], {.must = 1, .aim = {}})};
}

Result<std::vector<Row>> MeasureIdleMemory(const ServingContext& context, const ServerProcess& server) {
  context.say("idle memory");
  TANDEM_ASSIGN(const auto resident, server.MemoryBytes("VmRSS"));
  TANDEM_ASSIGN(const auto anonymous, server.MemoryBytes("RssAnon"));
  return std::vector<Row>{
      MakeRow("idle memory", "resident, tiny model loaded", "MB", {static_cast<double>(resident) / kMegabyte},
              {.must = 60, .aim = {}}),
      MakeRow("idle memory", "of that private (not files)", "MB", {static_cast<double>(anonymous) / kMegabyte})};
}

Result<std::vector<Row>> MeasureIdleConnections(const ServingContext& context, const ServerProcess& server) {
  context.say("idle connections");
  TANDEM_ASSIGN(const auto before, server.MemoryBytes("VmRSS"));
  std::vector<loadgen::Socket> sockets;
  for (int i = 0; i < kIdleConnections; ++i) {
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
  return std::vector<Row>{
      MakeRow("idle connections held", "REST, each after one request", "connections", {static_cast<double>(held)},
              {.must = kIdleConnections, .aim = {}, .better = Better::kHigher}),
      MakeRow("memory per idle connection", "REST, each after one request", "KB",
              {sockets.empty() ? 0 : grown / 1e3 / static_cast<double>(sockets.size())})};
}

}  // namespace tandem::bench
