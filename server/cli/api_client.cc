#include "server/cli/api_client.h"

#include <string_view>

#include <CLI/CLI.hpp>
#include <drogon/HttpClient.h>
#include <drogon/HttpRequest.h>
#include <drogon/HttpResponse.h>
#include <drogon/utils/Utilities.h>
#include <json/reader.h>
#include <trantor/net/EventLoopThread.h>
#include <trantor/utils/Logger.h>
#include <trantor/utils/Utilities.h>

namespace tandem::cli {
namespace {

Error ToError(drogon::ReqResult result, const std::string& url) {
  switch (result) {
    case drogon::ReqResult::BadServerAddress:
    case drogon::ReqResult::NetworkFailure:
      return {ErrorCode::kUnavailable,
              "no server answers at " + url + "; start one with `tandem serve`, or give --url"};
    case drogon::ReqResult::Timeout:
      return {ErrorCode::kUnavailable, "the server at " + url + " did not answer in time"};
    case drogon::ReqResult::HandshakeError:
    case drogon::ReqResult::InvalidCertificate:
      return {ErrorCode::kUnavailable, "TLS with " + url + " failed: is its certificate known here?"};
    default: return {ErrorCode::kUnavailable, "the server at " + url + " did not answer properly"};
  }
}

ErrorCode CodeOf(int status) {
  switch (status) {
    case 400: return ErrorCode::kInvalidArgument;
    case 401: return ErrorCode::kUnauthenticated;
    case 404: return ErrorCode::kNotFound;
    case 413: return ErrorCode::kTooLarge;
    case 501: return ErrorCode::kUnsupported;
    case 503: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;
  }
}

Result<Json::Value> Parse(std::string_view text) {
  Json::CharReaderBuilder builder;
  builder.settings_["allowSpecialFloats"] = true;
  Json::Value value;
  std::string errors;
  try {
    const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    if (text.empty() || reader->parse(text.data(), text.data() + text.size(), &value, &errors)) return value;
  } catch (const std::exception& e) {
    errors = e.what();
  }
  return Fail(ErrorCode::kInternal, "the server's answer is not JSON: {}", errors.substr(0, 200));
}

}  // namespace

struct ApiClient::Connection {
  ClientOptions options;
  trantor::EventLoopThread loop;
  drogon::HttpClientPtr client;

  Result<Json::Value> Send(const drogon::HttpRequestPtr& request);
};

Result<Json::Value> ApiClient::Connection::Send(const drogon::HttpRequestPtr& request) {
  if (!options.token.empty()) request->addHeader("Authorization", "Bearer " + options.token);
  const auto [result, response] = client->sendRequest(request, options.timeout_secs);
  if (result != drogon::ReqResult::Ok) return std::unexpected(ToError(result, options.url));
  const int status = static_cast<int>(response->statusCode());
  auto json = Parse(response->body());
  if (status >= 200 && status < 300) return json;
  std::string message = "HTTP " + std::to_string(status);
  if (json && json->isObject() && (*json)["error"].isString()) message = (*json)["error"].asString();
  return std::unexpected(Error{CodeOf(status), message});
}

ApiClient::ApiClient(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

ApiClient::~ApiClient() = default;

Result<std::unique_ptr<ApiClient>> ApiClient::Connect(ClientOptions options) {
  if (!options.url.starts_with("http://") && !options.url.starts_with("https://")) {
    return Invalid("--url '{}' must begin with http:// or https://", options.url);
  }
  if (options.url.starts_with("https://") && trantor::utils::tlsBackend() == "None") {
    return Fail(ErrorCode::kUnsupported, "--url '{}': the Drogon library here is built without TLS", options.url);
  }
  trantor::Logger::setLogLevel(trantor::Logger::kFatal);
  auto connection = std::make_unique<Connection>();
  connection->options = std::move(options);
  connection->loop.run();
  try {
    connection->client = drogon::HttpClient::newHttpClient(connection->options.url, connection->loop.getLoop(), false,
                                                           !connection->options.insecure_tls);
  } catch (const std::exception& e) {
    return Invalid("--url '{}': {}", connection->options.url, e.what());
  }
  return std::unique_ptr<ApiClient>(new ApiClient(std::move(connection)));
}

Result<Json::Value> ApiClient::Get(const std::string& path) {
  auto request = drogon::HttpRequest::newHttpRequest();
  request->setMethod(drogon::Get);
  request->setPathEncode(false);
  request->setPath(path);
  return connection_->Send(request);
}

Result<Json::Value> ApiClient::Post(const std::string& path, std::string body, const Headers& headers) {
  auto request = drogon::HttpRequest::newHttpRequest();
  request->setMethod(drogon::Post);
  request->setPathEncode(false);
  request->setPath(path);
  request->setContentTypeCode(drogon::CT_APPLICATION_OCTET_STREAM);
  for (const auto& [name, value] : headers) request->addHeader(name, value);
  request->setBody(std::move(body));
  return connection_->Send(request);
}

std::string PathSegment(const std::string& name) {
  std::string encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += c;
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      encoded.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return encoded;
}

void AddClientFlags(CLI::App& command, ClientOptions& options) {
  command.add_option("--url", options.url, "The server")->envname("TANDEM_URL")->capture_default_str();
  command.add_option("--token", options.token, "Bearer token")->envname("TANDEM_TOKEN");
  command.add_option("--timeout", options.timeout_secs, "Seconds to wait for an answer")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  command.add_flag("--insecure-tls", options.insecure_tls, "Accept any certificate");
}

}  // namespace tandem::cli
