#include "loadgen/grpc_channel.h"

#include <string>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "api/wire/json_text.h"
#include "loadgen/byte_stream.h"
#include "loadgen/socket_address.h"

namespace tandem::loadgen {
namespace {

constexpr std::size_t kMostChannels = 1024;

// Takes any certificate.
std::shared_ptr<grpc::ChannelCredentials> UncheckedCredentials(const TlsClientFiles& files) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  if (!files.cert.empty()) {
    options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        std::vector<grpc::experimental::IdentityKeyCertPair>{
            {.private_key = files.key, .certificate_chain = files.cert}}));
    options.watch_identity_key_cert_pairs();
  }
  return grpc::experimental::TlsCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const GrpcTransportOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  TANDEM_ASSIGN(const TlsClientFiles files, ReadTlsFiles(*options.tls));
  if (!options.tls->verify) return UncheckedCredentials(files);
  return grpc::SslCredentials({.pem_root_certs = files.ca, .pem_private_key = files.key, .pem_cert_chain = files.cert});
}

// gRPC does not say why it cannot connect; a connection of our own does.
Status CheckServer(const GrpcTransportOptions& options) {
  std::unique_ptr<TlsClient> tls;
  if (options.tls) {
    TANDEM_ASSIGN(tls, TlsClient::Create(*options.tls, options.host, "h2"));
  }
  TANDEM_ASSIGN(const SocketAddress address, FindServer(options.host, options.port, options.connect_timeout));
  if (!tls) return {};
  const auto stream = OpenStream(address, tls.get(), options.connect_timeout);
  if (stream) return {};
  return Fail(stream.error().code, "cannot connect to grpcs://{}: {}", Excerpt(HostAndPort(options.host, options.port)),
              stream.error().message);
}

}  // namespace

gpr_timespec FromNow(std::chrono::nanoseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

Result<std::vector<std::shared_ptr<grpc::Channel>>> OpenChannels(const GrpcTransportOptions& options) {
  if (options.channels < 1 || options.channels > kMostChannels) {
    return Invalid("channels must be between 1 and {}, got {}", kMostChannels, options.channels);
  }
  TANDEM_TRY(CheckServer(options));
  TANDEM_ASSIGN(const std::shared_ptr<grpc::ChannelCredentials> credentials, Credentials(options));
  grpc::ChannelArguments arguments;
  // Channels to one server would share one connection otherwise.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // What fails is to be counted, not sent again; and every call would keep its request for that.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (options.tls && !options.tls->server_name.empty()) arguments.SetSslTargetNameOverride(options.tls->server_name);
  const std::string server = HostAndPort(options.host, options.port);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (std::size_t i = 0; i < options.channels; ++i) {
    // With its scheme, so that no host's name is taken for one.
    channels.push_back(grpc::CreateCustomChannel("dns:///" + server, credentials, arguments));
    (void)channels.back()->GetState(true);
  }
  const gpr_timespec until = FromNow(options.connect_timeout);
  for (const auto& channel : channels) {
    if (!channel->WaitForConnected(until)) {
      return Fail(ErrorCode::kUnavailable, "{} takes connections but does not speak gRPC{}", Excerpt(server),
                  options.tls ? "" : "; if it does so over TLS, the URL begins with grpcs://");
    }
  }
  return channels;
}

}  // namespace tandem::loadgen
