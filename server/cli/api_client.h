#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "api/wire/json_fields.h"
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

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// JSON and, if its header says that there is more, the bytes behind it.
struct MixedAnswer {
  Json::Value json;
  std::string bytes;
};

// Why the server did not do what it was asked, and all that it found wrong, where it lists that.
struct Refusal {
  Error error;
  std::vector<JsonMistake> problems;
};

// An answer that grows, such as the log of a job that runs.
struct Listening {
  HttpHeaders headers;
  std::chrono::seconds max_silence = std::chrono::hours(24 * 365);
  std::function<bool(std::string_view piece)> on_piece;  // False: enough.
};

// A blocking client of the REST API over one connection. One thread uses it.
class ApiClient {
 public:
  using Headers = HttpHeaders;

  // Opens no connection yet; warns on stderr when the server's certificate is not to be checked. kInvalidArgument: the
  // URL is none, the token has characters that no header holds, or a file of TLS cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<ApiClient>> Connect(ClientOptions options);

  // The JSON of a successful answer; an answer that is an error, or none, is the Error.
  [[nodiscard]] Result<Json::Value> Get(const std::string& path);
  [[nodiscard]] Result<Json::Value> Delete(const std::string& path);
  [[nodiscard]] Result<Json::Value> Post(const std::string& path, const std::string& body);
  // The same for a document that the server checks.
  [[nodiscard]] std::expected<Json::Value, Refusal> PostDocument(const std::string& path, const std::string& body,
                                                                 const Headers& headers);
  // The same for an answer that may go on in binary form after its JSON, as that to an inference does.
  [[nodiscard]] Result<MixedAnswer> PostForMixed(const std::string& path, const std::string& body,
                                                 const Headers& headers);
  // Hears an answer until it ends or `on_piece` has had enough; --timeout counts until it begins.
  [[nodiscard]] Status Listen(const std::string& path, const Listening& listening);

 private:
  ApiClient(ClientOptions options, loadgen::Target target, std::unique_ptr<loadgen::HttpCaller> caller)
      : options_(std::move(options)), target_(std::move(target)), caller_(std::move(caller)) {}

  // "POST /path" with what every request has; the body is borrowed, and follows.
  [[nodiscard]] loadgen::HttpRequest Request(const std::string& what, const Headers& headers,
                                             std::string_view body) const;
  [[nodiscard]] Result<loadgen::HttpAnswer> Send(const std::string& what, const Headers& headers,
                                                 std::string_view body);
  // Of a call that got no answer.
  [[nodiscard]] Error Unanswered(Error error) const;
  [[nodiscard]] std::chrono::nanoseconds timeout() const;

  // Constant after construction.
  const ClientOptions options_;
  const loadgen::Target target_;
  const std::unique_ptr<loadgen::HttpCaller> caller_;
};

}  // namespace tandem::cli
