#include "server/cli/api_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>
#include <json/reader.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/http_request.h"
#include "loadgen/socket_address.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

ErrorCode CodeOf(int status) {
  switch (status) {
    case 400: return ErrorCode::kInvalidArgument;
    case 401: return ErrorCode::kUnauthenticated;
    case 404: return ErrorCode::kNotFound;
    case 409: return ErrorCode::kConflict;
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
Result<std::size_t> JsonSize(const std::optional<std::string>& header, std::size_t size) {
  if (!header) return size;
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(header->data(), header->data() + header->size(), length);
  if (error == std::errc() && end == header->data() + header->size() && length <= size) return length;
  return Fail(ErrorCode::kInternal, "the server's answer says that {} of its {} bytes are JSON", Excerpt(*header),
              size);
}

bool Succeeded(const loadgen::HttpAnswer& answer) {
  return answer.status >= 200 && answer.status < 300;
}

// Of an answer that is an error. Whatever answers, a problem without a message is none.
Refusal RefusalOf(const loadgen::HttpAnswer& answer) {
  Refusal refusal{.error = {CodeOf(answer.status), "HTTP " + std::to_string(answer.status)}, .problems = {}};
  const auto json = Parse(answer.body);
  if (!json || !json->isObject()) return refusal;
  if ((*json)["error"].isString()) refusal.error.message = (*json)["error"].asString();
  if (!(*json)["problems"].isArray()) return refusal;
  for (const Json::Value& problem : (*json)["problems"]) {
    if (!problem.isObject() || !problem["message"].isString()) continue;
    const Json::Value& pointer = problem["pointer"];
    refusal.problems.push_back({pointer.isString() ? pointer.asString() : "", problem["message"].asString()});
  }
  return refusal;
}

Result<MixedAnswer> MixedOf(const Result<loadgen::HttpAnswer>& answer) {
  if (!answer) return std::unexpected(answer.error());
  if (!Succeeded(*answer)) return std::unexpected(RefusalOf(*answer).error);
  TANDEM_ASSIGN(const std::size_t json_size, JsonSize(answer->json_bytes, answer->body.size()));
  TANDEM_ASSIGN(Json::Value json, Parse(std::string_view(answer->body).substr(0, json_size)));
  return MixedAnswer{std::move(json), answer->body.substr(json_size)};
}

Result<Json::Value> JsonOf(const Result<loadgen::HttpAnswer>& answer) {
  TANDEM_ASSIGN(MixedAnswer mixed, MixedOf(answer));
  return std::move(mixed.json);
}

HttpHeaders BodyHeaders(const std::string& body, const char* type, const HttpHeaders& more) {
  HttpHeaders all = {{"Content-Length", std::to_string(body.size())}, {"Content-Type", type}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

Result<std::unique_ptr<ApiClient>> ApiClient::Connect(ClientOptions options) {
  auto target = loadgen::ParseTarget(options.url, loadgen::kHttpSchemes);
  if (!target) return Invalid("--url: {}", target.error().message);
  if (std::ranges::any_of(options.token, [](char c) { return c <= ' ' || c > '~'; })) {
    return Invalid("--token: a token has printable ASCII characters only, and no blanks");
  }
  TANDEM_ASSIGN(auto caller, loadgen::HttpCaller::Create(*target, options.tls));
  if (target->tls() && !options.tls.verify) {
    std::fprintf(stderr, "warning: --tls-insecure: the certificate of %s is not checked\n", options.url.c_str());
  }
  return std::unique_ptr<ApiClient>(new ApiClient(std::move(options), *std::move(target), std::move(caller)));
}

loadgen::HttpRequest ApiClient::Request(const std::string& what, const Headers& headers, std::string_view body) const {
  loadgen::HttpRequest request{
      .head = Format("{} HTTP/1.1\r\nHost: {}\r\n", what, loadgen::HostAndPort(target_.host, target_.port)),
      .parts = {},
      .keep_body = true};
  if (!options_.token.empty()) request.head += Format("Authorization: Bearer {}\r\n", options_.token);
  for (const auto& [name, value] : headers) request.head += Format("{}: {}\r\n", name, value);
  request.head += "\r\n";
  if (!body.empty()) request.parts.push_back({.view = std::as_bytes(std::span(body)), .owner = nullptr});
  return request;
}

std::chrono::nanoseconds ApiClient::timeout() const {
  return std::chrono::nanoseconds(std::llround(options_.timeout_secs * 1e9));
}

Error ApiClient::Unanswered(Error error) const {
  if (caller_->reached()) return error;
  return {ErrorCode::kUnavailable, error.message + "; start a server with `tandem serve`, or give --url"};
}

Result<loadgen::HttpAnswer> ApiClient::Send(const std::string& what, const Headers& headers, std::string_view body) {
  return caller_->Call(Request(what, headers, body), timeout()).transform_error([this](Error error) {
    return Unanswered(std::move(error));
  });
}

Result<Json::Value> ApiClient::Get(const std::string& path) {
  return JsonOf(Send("GET " + path, {}, ""));
}

Result<Json::Value> ApiClient::Delete(const std::string& path) {
  return JsonOf(Send("DELETE " + path, {}, ""));
}

Result<Json::Value> ApiClient::Post(const std::string& path, const std::string& body) {
  TANDEM_ASSIGN(MixedAnswer answer, PostForMixed(path, body, {}));
  return std::move(answer.json);
}

std::expected<Json::Value, Refusal> ApiClient::PostDocument(const std::string& path, const std::string& body,
                                                            const Headers& headers) {
  const auto answer = Send("POST " + path, BodyHeaders(body, "application/json", headers), body);
  if (answer && !Succeeded(*answer)) return std::unexpected(RefusalOf(*answer));
  return JsonOf(answer).transform_error([](Error error) { return Refusal{std::move(error), {}}; });
}

Result<MixedAnswer> ApiClient::PostForMixed(const std::string& path, const std::string& body, const Headers& headers) {
  return MixedOf(Send("POST " + path, BodyHeaders(body, "application/octet-stream", headers), body));
}

Status ApiClient::Listen(const std::string& path, const Listening& listening) {
  const auto answer =
      caller_->Listen(Request("GET " + path, listening.headers, ""),
                      {.timeout = timeout(), .max_silence = listening.max_silence, .on_piece = listening.on_piece});
  if (!answer) return std::unexpected(Unanswered(answer.error()));
  if (!Succeeded(*answer)) return std::unexpected(RefusalOf(*answer).error);
  return {};
}

void AddClientFlags(CLI::App& command, ClientOptions& options) {
  command.add_option("--url", options.url, "The server")->envname("TANDEM_URL")->capture_default_str();
  command.add_option("--token", options.token, "Bearer token")->envname("TANDEM_TOKEN");
  command.add_option("--timeout", options.timeout_secs, "Seconds to wait for an answer")
      ->check(Between(0.001, 86400))
      ->capture_default_str();
  command.add_option("--tls-ca", options.tls.ca_file, "Authorities to trust (PEM); those of the system by default")
      ->envname("TANDEM_TLS_CA");
  command.add_option("--tls-cert", options.tls.cert_file, "Certificate to show to the server (PEM)");
  command.add_option("--tls-key", options.tls.key_file, "Its key (PEM)");
  command.add_flag("!--tls-insecure", options.tls.verify, "Take any certificate of the server's");
}

}  // namespace tandem::cli
