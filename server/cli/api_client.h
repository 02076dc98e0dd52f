#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"

namespace CLI {
class App;
}

namespace tandem::cli {

// Where the server is and how to be let in.
struct ClientOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string token;
  double timeout_secs = 60;
  bool insecure_tls = false;  // Accept any certificate.
};

// Adds --url, --token, --timeout and --insecure-tls, with their environment variables.
void AddClientFlags(CLI::App& command, ClientOptions& options);

// JSON and, if its header says that there is more, the bytes behind it.
struct MixedAnswer {
  Json::Value json;
  std::string bytes;
};

// A blocking client of the REST API (Drogon's HTTP client on a loop that all of them share). One thread uses it.
class ApiClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Opens no connection yet. kInvalidArgument: the URL is none.
  [[nodiscard]] static Result<std::unique_ptr<ApiClient>> Connect(ClientOptions options);
  ~ApiClient();

  // The JSON of a successful answer; an answer that is an error, or none, is the Error.
  [[nodiscard]] Result<Json::Value> Get(const std::string& path);
  [[nodiscard]] Result<Json::Value> Post(const std::string& path, std::string body);
  // The same for an answer that may go on in binary form after its JSON, as that to an inference does.
  [[nodiscard]] Result<MixedAnswer> PostForMixed(const std::string& path, std::string body, const Headers& headers);

 private:
  struct Connection;
  explicit ApiClient(std::unique_ptr<Connection> connection);
  const std::unique_ptr<Connection> connection_;
};

}  // namespace tandem::cli
