#include "loadgen/tls_client.h"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

// A bundle of all the world's authorities has a quarter of a megabyte.
constexpr std::uintmax_t kLargestFile = 4 << 20;

// OpenSSL's own socket BIO would raise SIGPIPE when the server has gone.
int WriteSocket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent = send(static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))), bytes,
                         static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReadSocket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto got = recv(static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))), bytes,
                        static_cast<std::size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

long ControlSocket(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH:
    case BIO_CTRL_DUP: return 1;
    case BIO_CTRL_EOF: return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    default: return 0;
  }
}

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tandem socket");
    BIO_meth_set_write(made, WriteSocket);
    BIO_meth_set_read(made, ReadSocket);
    BIO_meth_set_ctrl(made, ControlSocket);
    return made;
  }();
  return method;
}

bool IsAddress(const std::string& host) {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// The name or address that the certificate of the session has to hold.
std::string CheckedName(SSL* session) {
  X509_VERIFY_PARAM* const check = SSL_get0_param(session);
  if (const char* name = X509_VERIFY_PARAM_get0_host(check, 0); name != nullptr) return name;
  char* const address = X509_VERIFY_PARAM_get1_ip_asc(check);
  std::string text = address == nullptr ? "" : address;
  OPENSSL_free(address);
  return text;
}

std::string ReasonText(unsigned long error) {
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown error" : reason;
}

std::string LastError() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return ReasonText(error);
}

Result<std::string> ReadPem(const char* what, const std::string& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return Invalid("the TLS {} '{}' cannot be read: {}", what, Excerpt(file), error.message());
  if (size > kLargestFile) {
    return Invalid("the TLS {} '{}' has {} bytes; at most {} are read", what, Excerpt(file), size, kLargestFile);
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream) return Invalid("the TLS {} '{}' cannot be read", what, Excerpt(file));
  return text;
}

Status LoadFiles(SSL_CTX* context, const TlsClientOptions& options) {
  TANDEM_TRY(ReadTlsFiles(options));
  // A key with a password cannot be read; without this OpenSSL would ask for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1) {
    return Invalid("the TLS CA '{}' cannot be used: {}", Excerpt(options.ca_file), LastError());
  }
  if (options.cert_file.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options.cert_file.c_str()) != 1) {
    return Invalid("the TLS certificate '{}' cannot be used: {}", Excerpt(options.cert_file), LastError());
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Invalid("the TLS key '{}' cannot be used or does not fit the certificate '{}': {}",
                   Excerpt(options.key_file), Excerpt(options.cert_file), LastError());
  }
  return {};
}

}  // namespace

Result<TlsClientFiles> ReadTlsFiles(const TlsClientOptions& options) {
  if (options.cert_file.empty() != options.key_file.empty()) {
    return Invalid("a TLS certificate of the client's needs its key, and the other way round; only '{}' is given",
                   Excerpt(options.cert_file.empty() ? options.key_file : options.cert_file));
  }
  TlsClientFiles files;
  if (!options.ca_file.empty()) {
    TANDEM_ASSIGN(files.ca, ReadPem("CA", options.ca_file));
  }
  if (options.cert_file.empty()) return files;
  TANDEM_ASSIGN(files.cert, ReadPem("certificate", options.cert_file));
  TANDEM_ASSIGN(files.key, ReadPem("key", options.key_file));
  return files;
}

void FreeTlsSession::operator()(ssl_st* session) const {
  SSL_free(session);
}

struct TlsClient::Native {
  ~Native() { SSL_CTX_free(context); }

  SSL_CTX* context = nullptr;
  std::string asked_name;  // Empty for an address: only names are asked for.
};

TlsClient::TlsClient(std::unique_ptr<Native> native) : native_(std::move(native)) {}
TlsClient::~TlsClient() = default;

Result<std::unique_ptr<TlsClient>> TlsClient::Create(const TlsClientOptions& options, const std::string& host,
                                                     std::string_view protocol) {
  ERR_clear_error();
  auto native = std::make_unique<Native>();
  native->context = SSL_CTX_new(TLS_client_method());
  SSL_CTX* const context = native->context;
  if (context == nullptr) return Fail(ErrorCode::kInternal, "TLS cannot be set up: {}", LastError());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // One system call for a record instead of two.
  SSL_CTX_set_read_ahead(context, 1);
  TANDEM_TRY(LoadFiles(context, options));
  std::string offer(1, static_cast<char>(protocol.size()));
  offer += protocol;
  SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(offer.data()),
                          static_cast<unsigned>(offer.size()));
  std::string name = options.server_name.empty() ? host : options.server_name;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  X509_VERIFY_PARAM* const check = SSL_CTX_get0_param(context);
  if (IsAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(check, name.c_str());
  } else {
    X509_VERIFY_PARAM_set_hostflags(check, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(check, name.c_str(), name.size()) != 1) {
      return Invalid("'{}' is no name that a TLS certificate could hold", Excerpt(name));
    }
    native->asked_name = name;
  }
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return std::unique_ptr<TlsClient>(new TlsClient(std::move(native)));
}

TlsSession TlsClient::MakeSession(int fd) const {
  TlsSession session(SSL_new(native_->context));
  BIO* const bio = session ? BIO_new(SocketMethod()) : nullptr;
  if (bio == nullptr) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place for a pointer that holds a number.
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session.get(), bio, bio);
  SSL_set_connect_state(session.get());
  if (!native_->asked_name.empty()) SSL_set_tlsext_host_name(session.get(), native_->asked_name.c_str());
  return session;
}

std::string WhyTlsBroke(const TlsSession& session, unsigned long error) {
  const long verdict = SSL_get_verify_result(session.get());
  const bool refused_by_us = ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (refused_by_us && verdict == X509_V_ERR_CERT_HAS_EXPIRED) return "the server's certificate has expired";
  if (refused_by_us && (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)) {
    return Format("the server's certificate is not for '{}'", Excerpt(CheckedName(session.get())));
  }
  if (refused_by_us) {
    return std::string("the server's certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
  }
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST: return "the server does not speak TLS";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the server wants a client certificate and was not shown one that it knows";
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      if (SSL_is_init_finished(session.get()) == 0) {
        return "the server closed the connection in the TLS handshake; does it speak TLS?";
      }
      return "the server closed the connection";
    default: break;
  }
  // What the peer says is an alert; all else is what we found.
  if (ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET) return "the server refused: " + ReasonText(error);
  return "TLS failed: " + ReasonText(error);
}

}  // namespace tandem::loadgen
