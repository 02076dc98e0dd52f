#pragma once

#include <memory>
#include <string>

#include "api/base/result.h"
#include "server/http/stream.h"

namespace tandem::http {

// PEM files.
struct TlsOptions {
  std::string certificate;  // The server's chain, its own certificate first.
  std::string key;
  std::string client_ca;  // Not empty: a client must show a certificate that one of these has signed.
};

// The server's side of TLS 1.2 and 1.3 (OpenSSL; Debian's trantor is built without). Thread-safe; constant.
class TlsContext {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TlsContext>> Create(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // An encrypted stream on an accepted socket; null when there is no memory for it.
  [[nodiscard]] std::unique_ptr<Stream> MakeStream(UniqueFd fd) const;

 private:
  struct Native;
  explicit TlsContext(std::unique_ptr<Native> native);

  const std::unique_ptr<Native> native_;
};

}  // namespace tandem::http
