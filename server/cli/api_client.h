#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "loadgen/http_caller.h"
#include "loadgen/target.h"
#include "loadgen/tls_client.h"

namespace CLI {
class App;
}

namespace tandem::cli {

// Where the server is and how to be let in.
struct ClientOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string token;
  double timeout_secs = 60;
  loadgen::TlsClientOptions tls;  // For https.
};

// Adds --url, --token, --timeout and --tls-*, with their environment variables.
void AddClientFlags(CLI::App& command, ClientOptions& options);

// JSON and, if its header says that there is more, the bytes behind it.
struct MixedAnswer {
  Json::Value json;
  std::string bytes;
};

// A blocking client of the REST API over one connection. One thread uses it.
class ApiClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Opens no connection yet; warns on stderr when the server's certificate is not to be checked. kInvalidArgument: the
  // URL is none, the token has characters that no header holds, or a file of TLS cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<ApiClient>> Connect(ClientOptions options);

  // The JSON of a successful answer; an answer that is an error, or none, is the Error.
  [[nodiscard]] Result<Json::Value> Get(const std::string& path);
  [[nodiscard]] Result<Json::Value> Post(const std::string& path, const std::string& body);
  // The same for an answer that may go on in binary form after its JSON, as that to an inference does.
  [[nodiscard]] Result<MixedAnswer> PostForMixed(const std::string& path, const std::string& body,
                                                 const Headers& headers);

 private:
  ApiClient(ClientOptions options, loadgen::Target target, std::unique_ptr<loadgen::HttpCaller> caller)
      : options_(std::move(options)), target_(std::move(target)), caller_(std::move(caller)) {}

  // "POST /path" with what every request has; the body follows.
  [[nodiscard]] Result<MixedAnswer> Send(const std::string& what, const Headers& headers, const std::string& body);

  // Constant after construction.
  const ClientOptions options_;
  const loadgen::Target target_;
  const std::unique_ptr<loadgen::HttpCaller> caller_;
};

}  // namespace tandem::cli
