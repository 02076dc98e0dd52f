#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "loadgen/grpc_transport.h"
#include "loadgen/http_transport.h"
#include "loadgen/run.h"

namespace tandem::loadgen {
namespace {

// The requests of the one kind; one of the other kind is our own mistake.
template <typename Kind>
Result<std::vector<Kind>> OfKind(const LoadSpec& spec) {
  std::vector<Kind> requests;
  for (const WireRequest* request : RequestsOf(spec)) {
    const Kind* const own = std::get_if<Kind>(request);
    if (own == nullptr) return Invalid("a request is not made for {}", SchemeName(spec.scheme));
    requests.push_back(*own);
  }
  return requests;
}

// A closed loop needs a connection for each of its users.
std::size_t Users(const LoadSpec& spec) {
  std::size_t users = 0;
  for (const ModelLoad& model : spec.models) {
    const bool closed = model.arrivals.kind == ArrivalKind::kClosed;
    if (closed) users += static_cast<std::size_t>(std::max(model.arrivals.users, 0));
  }
  return users;
}

Result<std::unique_ptr<Transport>> MakeTransport(const LoadSpec& spec, const Clock& clock) {
  const Target target{.scheme = spec.scheme, .host = spec.host, .port = spec.port};
  std::optional<TlsClientOptions> tls;
  if (target.tls()) tls = spec.tls;
  if (target.grpc()) {
    TANDEM_ASSIGN(const auto requests, OfKind<GrpcInferRequest>(spec));
    const GrpcTransportOptions options{.host = spec.host,
                                       .port = spec.port,
                                       .channels = spec.channels,
                                       .request_timeout = spec.request_timeout,
                                       .tls = std::move(tls)};
    return GrpcTransport::Create(options, requests, clock);
  }
  TANDEM_ASSIGN(auto requests, OfKind<HttpRequest>(spec));
  const HttpTransportOptions options{.host = spec.host,
                                     .port = spec.port,
                                     .max_connections = std::max(spec.connections, Users(spec)),
                                     .request_timeout = spec.request_timeout,
                                     .tls = std::move(tls)};
  return HttpTransport::Create(options, std::move(requests), clock);
}

}  // namespace

Result<LoadReport> RunLoad(const LoadSpec& spec, const LoadHooks& hooks) {
  const Clock& clock = RealClock::Instance();
  TANDEM_ASSIGN(const std::unique_ptr<Transport> transport, MakeTransport(spec, clock));
  return DriveLoad(spec, *transport, clock, hooks);
}

}  // namespace tandem::loadgen
