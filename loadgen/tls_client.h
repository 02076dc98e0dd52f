#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "loadgen/socket_address.h"

struct ssl_st;

namespace tandem::loadgen {

// How a server over TLS is checked, and who we say we are. PEM files.
struct TlsClientOptions {
  std::string ca_file;      // Whom to trust; empty: the authorities of this system.
  std::string cert_file;    // Our own chain, for servers that ask for one; needs key_file.
  std::string key_file;     // Needs cert_file.
  bool verify = true;       // False takes any certificate: no protection from somebody in between.
  std::string server_name;  // Asked for and looked for in the certificate; empty: the host that is connected to.
};

// What the files of the options hold.
struct TlsClientFiles {
  std::string ca, cert, key;
};

// Reads them. kInvalidArgument: one is missing, too large or given without its counterpart; the message names it.
[[nodiscard]] Result<TlsClientFiles> ReadTlsFiles(const TlsClientOptions& options);

// An OpenSSL session, freed with its owner.
struct FreeTlsSession {
  void operator()(ssl_st* session) const;
};
using TlsSession = std::unique_ptr<ssl_st, FreeTlsSession>;

// The client's side of TLS 1.2 and 1.3 with one server (OpenSSL). Made by a transport, shared by its connections.
// Constant after construction and thread-safe.
class TlsClient {
 public:
  // `protocol` is offered by ALPN: "http/1.1" or "h2". kInvalidArgument: a file cannot be used; the message names it.
  [[nodiscard]] static Result<std::unique_ptr<TlsClient>> Create(const TlsClientOptions& options,
                                                                 const std::string& host, std::string_view protocol);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // A session on a non-blocking socket, which outlives it. Null when there is no memory for it.
  [[nodiscard]] TlsSession MakeSession(int fd) const;

 private:
  struct Native;
  explicit TlsClient(std::unique_ptr<Native> native);

  const std::unique_ptr<Native> native_;
};

// Why a session of ours broke, for people: "the server's certificate has expired". `error` is what OpenSSL's queue of
// errors held at that time.
[[nodiscard]] std::string WhyTlsBroke(const TlsSession& session, unsigned long error);

}  // namespace tandem::loadgen
