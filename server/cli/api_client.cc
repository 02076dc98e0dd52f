#include "server/cli/api_client.h"

#include <charconv>
#include <mutex>
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

#include "server/lifecycle/number_range.h"

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
  } catch (const std::exception&) {
    // Nested too deeply, for one.
  }
  return Fail(ErrorCode::kInternal, "the server's answer is not JSON; does --url name a model server?");
}

// How much of a body of `size` bytes is JSON: what the header says, or all of it.
Result<std::size_t> JsonSize(const std::string& header, std::size_t size) {
  if (header.empty()) return size;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), length);
  if (error == std::errc() && end == header.data() + header.size() && length <= size) return length;
  return Fail(ErrorCode::kInternal, "the server's answer says that {} of its {} bytes are JSON", header, size);
}

// http://HOST, with a port and a slash if need be. Drogon would take what follows for a part of the name.
bool IsServerUrl(std::string_view url) {
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  if (scheme == 0) return false;
  std::string_view host = url.substr(scheme);
  if (host.ends_with('/')) host.remove_suffix(1);
  if (host.empty() || host.find_first_of("/?#@ \t\r\n") != std::string_view::npos) return false;
  const std::size_t colon = host.rfind(':');
  // In brackets the colons are an IPv6 address.
  if (colon == std::string_view::npos || (host.ends_with(']') && host.starts_with('['))) return true;
  const std::string_view port = host.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return colon > 0 && error == std::errc() && end == port.data() + port.size() && number > 0 && number <= 65535;
}

drogon::HttpRequestPtr PostRequest(const std::string& path, std::string body) {
  auto request = drogon::HttpRequest::newHttpRequest();
  request->setMethod(drogon::Post);
  request->setPathEncode(false);
  request->setPath(path);
  request->setContentTypeCode(drogon::CT_APPLICATION_OCTET_STREAM);
  request->setBody(std::move(body));
  return request;
}

// The loop of all clients. It lives until the process ends: threads of trantor that look up names use it even after the
// client that asked has gone, and would use it after it has gone.
trantor::EventLoop* ClientLoop() {
  static trantor::EventLoopThread& thread = *new trantor::EventLoopThread();
  static std::once_flag started;
  std::call_once(started, [] { thread.run(); });
  return thread.getLoop();
}

Result<Json::Value> JsonOf(Result<MixedAnswer> answer) {
  if (!answer) return std::unexpected(std::move(answer).error());
  return std::move(answer->json);
}

}  // namespace

struct ApiClient::Connection {
  ClientOptions options;
  drogon::HttpClientPtr client;

  Result<MixedAnswer> Send(const drogon::HttpRequestPtr& request);
};

Result<MixedAnswer> ApiClient::Connection::Send(const drogon::HttpRequestPtr& request) {
  if (!options.token.empty()) request->addHeader("Authorization", "Bearer " + options.token);
  const auto [result, response] = client->sendRequest(request, options.timeout_secs);
  if (result != drogon::ReqResult::Ok) return std::unexpected(ToError(result, options.url));
  const int status = static_cast<int>(response->statusCode());
  const std::string_view body = response->body();
  TANDEM_ASSIGN(const std::size_t json_size,
                JsonSize(response->getHeader("inference-header-content-length"), body.size()));
  auto json = Parse(body.substr(0, json_size));
  if (status >= 200 && status < 300) {
    if (!json) return std::unexpected(std::move(json).error());
    return MixedAnswer{*std::move(json), std::string(body.substr(json_size))};
  }
  std::string message = "HTTP " + std::to_string(status);
  if (json && json->isObject() && (*json)["error"].isString()) message = (*json)["error"].asString();
  return std::unexpected(Error{CodeOf(status), message});
}

ApiClient::ApiClient(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

ApiClient::~ApiClient() = default;

Result<std::unique_ptr<ApiClient>> ApiClient::Connect(ClientOptions options) {
  if (!IsServerUrl(options.url))
    return Invalid("--url '{}' must be http://HOST:PORT or https://HOST:PORT", options.url);
  if (options.url.starts_with("https://") && trantor::utils::tlsBackend() == "None") {
    return Fail(ErrorCode::kUnsupported, "--url '{}': the Drogon library here is built without TLS", options.url);
  }
  trantor::Logger::setLogLevel(trantor::Logger::kFatal);
  auto connection = std::make_unique<Connection>();
  connection->options = std::move(options);
  try {
    connection->client = drogon::HttpClient::newHttpClient(connection->options.url, ClientLoop(), false,
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
  return JsonOf(connection_->Send(request));
}

Result<Json::Value> ApiClient::Post(const std::string& path, std::string body) {
  return JsonOf(connection_->Send(PostRequest(path, std::move(body))));
}

Result<MixedAnswer> ApiClient::PostForMixed(const std::string& path, std::string body, const Headers& headers) {
  const auto request = PostRequest(path, std::move(body));
  for (const auto& [name, value] : headers) request->addHeader(name, value);
  return connection_->Send(request);
}

void AddClientFlags(CLI::App& command, ClientOptions& options) {
  command.add_option("--url", options.url, "The server")->envname("TANDEM_URL")->capture_default_str();
  command.add_option("--token", options.token, "Bearer token")->envname("TANDEM_TOKEN");
  command.add_option("--timeout", options.timeout_secs, "Seconds to wait for an answer")
      ->check(Between(0.001, 86400))
      ->capture_default_str();
  command.add_flag("--insecure-tls", options.insecure_tls, "Accept any certificate");
}

}  // namespace tandem::cli
