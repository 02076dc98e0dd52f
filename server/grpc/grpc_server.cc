#include "server/grpc/grpc_server.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "profiler/machine.h"
#include "server/grpc/completion_loop.h"
#include "server/grpc/connection_acceptor.h"
#include "server/grpc/front_end_parts.h"
#include "server/grpc/generic_calls.h"
#include "server/grpc/guarded_reads.h"
#include "server/grpc/header_guard.h"
#include "server/grpc/health_routes.h"
#include "server/grpc/inference_routes.h"
#include "server/grpc/reflection_routes.h"
#include "server/log/log.h"

namespace tandem {
namespace {

using namespace grpc_front;  // NOLINT(google-build-using-namespace): this file puts its parts together.

// One thread has room for more calls than a small machine can compute; a second one would only compete with those.
constexpr int kCoresForTwoThreads = 4;

constexpr std::chrono::milliseconds kLastGrace{500};

// Debian's Abseil, whose locks gRPC takes some hundred times a request, is built to look for deadlocks among them.
void StopLookingForDeadlocks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

// Both libraries write to standard error by default, mostly of what strangers send: a failed handshake, a string that
// is not UTF-8. That goes to our log, at the level that nobody can flood by default.
void RouteLibraryLogs() {
  static std::once_flag once;
  std::call_once(once, [] {
    gpr_set_log_function(
        [](gpr_log_func_args* line) { LogDebug(line->message, {{"library", "grpc"}, {"file", line->file}}); });
    google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char* file, int, const std::string& message) {
      LogDebug(message, {{"library", "protobuf"}, {"file", file}});
    });
  });
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return Invalid("'{}' cannot be read", path);
  return std::move(text).str();
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const GrpcOptions& options) {
  if (!options.tls) return grpc::InsecureServerCredentials();
  // gRPC says nothing about files that do not fit until a client comes, and then only to the log.
  TANDEM_TRY(http::TlsContext::Create(*options.tls));
  grpc::SslServerCredentialsOptions ssl(options.tls->client_ca.empty()
                                            ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                            : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  TANDEM_ASSIGN(pair.private_key, ReadFile(options.tls->key));
  TANDEM_ASSIGN(pair.cert_chain, ReadFile(options.tls->certificate));
  ssl.pem_key_cert_pairs.push_back(std::move(pair));
  if (!options.tls->client_ca.empty()) {
    TANDEM_ASSIGN(ssl.pem_root_certs, ReadFile(options.tls->client_ca));
  }
  return grpc::SslServerCredentials(ssl);
}

int Milliseconds(std::chrono::milliseconds duration) {
  return static_cast<int>(std::min<std::int64_t>(duration.count(), std::numeric_limits<int>::max()));
}

void SetLimits(const GrpcOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(
      static_cast<int>(std::min<std::size_t>(options.max_message_bytes, std::numeric_limits<int>::max())));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_streams_per_connection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(options.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(options.min_client_ping_interval));
  // gRPC ends the whole connection over it, so calls are refused before (GenericCalls::MakeHandler).
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(2 * kMaxHeaderBlock));
  // Messages are unpacked in raw_message.cc, within max_message_bytes.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  grpc::ResourceQuota quota("tandem");
  quota.Resize(options.memory_quota_bytes);
  builder.SetResourceQuota(quota);
}

Routes AllRoutes(FrontEndParts& parts) {
  Routes routes;
  AddInferenceRoutes(parts, routes);
  AddHealthRoutes(parts, routes);
  AddReflectionRoutes(parts, routes);
  return routes;
}

int ThreadCount(const GrpcOptions& options) {
  if (options.threads > 0) return options.threads;
  return UsableCores() >= kCoresForTwoThreads ? 2 : 1;
}

}  // namespace

// Destroyed in reverse order: connections end before the server, and that before its queues and what they use.
struct GrpcServer::Parts {
  Parts(GrpcOptions options, ServerCore& core) : front_end(core, std::move(options)) {}

  FrontEndParts front_end;
  GenericCalls calls{front_end, AllRoutes(front_end)};
  std::vector<std::unique_ptr<CompletionLoop>> loops;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<ConnectionAcceptor> acceptor;
};

GrpcServer::GrpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcServer::~GrpcServer() {
  Drain(kLastGrace);
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::Start(GrpcOptions options, ServerCore& core) {
  RouteLibraryLogs();
  StopLookingForDeadlocks();
  auto parts = std::make_unique<Parts>(std::move(options), core);
  const GrpcOptions& chosen = parts->front_end.options;
  TANDEM_ASSIGN(auto credentials, MakeCredentials(chosen));
  TANDEM_ASSIGN(parts->acceptor, ConnectionAcceptor::Listen(chosen.address, chosen.port, chosen.max_connections));

  grpc::ServerBuilder builder;
  SetLimits(chosen, builder);
  builder.RegisterAsyncGenericService(&parts->calls.service());
  for (int i = 0; i < ThreadCount(chosen); ++i) {
    parts->loops.push_back(std::make_unique<CompletionLoop>(
        builder.AddCompletionQueue(), core.clock, chosen.poll_window,
        [&front_end = parts->front_end] { return front_end.computing.load(std::memory_order_relaxed) == 0; }));
  }
  parts->connections = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
  parts->server = builder.BuildAndStart();
  if (!parts->server) {
    return Fail(ErrorCode::kInternal, "gRPC could not be started on {}:{}", chosen.address, parts->acceptor->port());
  }
  for (const auto& loop : parts->loops) {
    parts->calls.TakeCallsOn(*loop);
    loop->Start();
  }
  parts->acceptor->Start([connections = parts->connections.get(), tls = chosen.tls.has_value()](int fd) {
    if (!tls) GuardReads(fd);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = fd;
    connections->HandleNewConnection(&connection);
  });
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(parts)));
}

int GrpcServer::port() const {
  return parts_->acceptor->port();
}

void GrpcServer::Drain(std::chrono::milliseconds grace) {
  parts_->front_end.draining.store(true, std::memory_order_release);
  parts_->acceptor->Stop();
  parts_->front_end.long_calls.Drain();
  parts_->calls.Drain();
  parts_->server->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(grace.count(), GPR_TIMESPAN)));
  parts_->calls.WaitUntilNone();
  for (const auto& loop : parts_->loops) loop->Stop();
}

}  // namespace tandem
