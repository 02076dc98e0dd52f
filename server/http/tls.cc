#include "server/http/tls.h"

#include <algorithm>
#include <string_view>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace tandem::http {
namespace {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

std::string LastError() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

int SelectHttp11(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in, unsigned int in_size,
                 void*) {
  constexpr std::string_view kOffer = "http/1.1";
  for (unsigned int i = 0; i < in_size; i += 1 + in[i]) {
    if (in[i] == kOffer.size() && i + in[i] < in_size &&
        std::equal(kOffer.begin(), kOffer.end(), reinterpret_cast<const char*>(in + i + 1))) {
      *out = in + i + 1;
      *size = in[i];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_NOACK;
}

class TlsStream final : public Stream {
 public:
  TlsStream(UniqueFd fd, SSL* ssl) : fd_(std::move(fd)), ssl_(ssl) {}

  int fd() const override { return fd_.get(); }
  bool wants_write() const override { return wants_write_; }
  bool holds_bytes() const override { return SSL_has_pending(ssl_.get()) != 0; }
  bool is_tls() const override { return true; }

  IoResult Handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) {
      wants_write_ = false;
      return {IoResult::Kind::kBytes};
    }
    return Failed(result);
  }

  IoResult Read(std::span<std::byte> into) override {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    if (result == 1) {
      wants_write_ = false;
      return {IoResult::Kind::kBytes, bytes};
    }
    return Failed(result);
  }

  IoResult Write(std::span<const std::span<const std::byte>> pieces) override {
    std::size_t total = 0;
    for (const std::span<const std::byte> piece : pieces) {
      ERR_clear_error();
      std::size_t bytes = 0;
      const int result = SSL_write_ex(ssl_.get(), piece.data(), piece.size(), &bytes);
      if (result != 1) {
        const IoResult failure = Failed(result);
        return total > 0 && failure.kind == IoResult::Kind::kWouldBlock ? IoResult{IoResult::Kind::kBytes, total}
                                                                        : failure;
      }
      total += bytes;
      if (bytes < piece.size()) break;
    }
    wants_write_ = false;
    return {IoResult::Kind::kBytes, total};
  }

  void ShutdownWrite() override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
    ::shutdown(fd_.get(), SHUT_WR);
  }

 private:
  IoResult Failed(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    wants_write_ = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return {IoResult::Kind::kWouldBlock};
    if (error == SSL_ERROR_ZERO_RETURN) return {IoResult::Kind::kEnd};
    return {IoResult::Kind::kBroken};
  }

  UniqueFd fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  bool wants_write_ = false;
};

}  // namespace

struct TlsContext::Native {
  SSL_CTX* context = nullptr;
  ~Native() { SSL_CTX_free(context); }
};

TlsContext::TlsContext(std::unique_ptr<Native> native) : native_(std::move(native)) {}
TlsContext::~TlsContext() = default;

Result<std::unique_ptr<TlsContext>> TlsContext::Create(const TlsOptions& options) {
  ERR_clear_error();
  auto native = std::make_unique<Native>();
  native->context = SSL_CTX_new(TLS_server_method());
  SSL_CTX* context = native->context;
  if (context == nullptr) return Fail(ErrorCode::kInternal, "TLS cannot be set up: {}", LastError());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context, SelectHttp11, nullptr);
  // A key with a password cannot be read; without this OpenSSL would ask for it on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return Invalid("the TLS certificate '{}' cannot be read: {}", options.certificate, LastError());
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return Invalid("the TLS key '{}' cannot be read or does not fit the certificate '{}': {}", options.key,
                   options.certificate, LastError());
  }
  if (!options.client_ca.empty()) {
    STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(options.client_ca.c_str());
    if (names == nullptr || SSL_CTX_load_verify_locations(context, options.client_ca.c_str(), nullptr) != 1) {
      sk_X509_NAME_pop_free(names, X509_NAME_free);
      return Invalid("the TLS client CA '{}' cannot be read: {}", options.client_ca, LastError());
    }
    SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Without it OpenSSL refuses to resume sessions of verified clients.
    constexpr unsigned char kSessionContext[] = "tandem";
    SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext - 1);
  }
  return std::unique_ptr<TlsContext>(new TlsContext(std::move(native)));
}

std::unique_ptr<Stream> TlsContext::MakeStream(UniqueFd fd) const {
  std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(native_->context));
  if (!ssl || SSL_set_fd(ssl.get(), fd.get()) != 1) return nullptr;
  SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsStream>(std::move(fd), ssl.release());
}

}  // namespace tandem::http
