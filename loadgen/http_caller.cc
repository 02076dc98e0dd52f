#include "loadgen/http_caller.h"

#include <array>
#include <utility>

#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

constexpr std::size_t kScratchBytes = 64 << 10;

HttpAnswer Take(HttpResponseReader& reader) {
  HttpAnswer answer{.status = reader.status(), .body = std::move(reader.body()), .json_bytes = {}};
  if (const auto header = reader.Header("inference-header-content-length")) answer.json_bytes = std::string(*header);
  return answer;
}

// Of an answer that is no success every piece stays where it is. False: whoever listens has had enough.
bool HandOn(HttpResponseReader& reader, const HttpListening& listening) {
  if (reader.status() < 200 || reader.status() >= 300) return true;
  const std::string piece = reader.TakePiece();
  return piece.empty() || listening.on_piece(piece);
}

}  // namespace

Result<std::unique_ptr<HttpCaller>> HttpCaller::Create(const Target& target, const TlsClientOptions& tls) {
  std::unique_ptr<TlsClient> client;
  if (target.tls()) {
    TANDEM_ASSIGN(client, TlsClient::Create(tls, target.host, "http/1.1"));
  }
  return std::unique_ptr<HttpCaller>(new HttpCaller(target, std::move(client)));
}

std::unexpected<Error> HttpCaller::Failed(std::string_view why) {
  connection_.reset();
  return Fail(ErrorCode::kUnavailable, "no answer from {}://{}: {}", SchemeName(target_.scheme),
              Excerpt(HostAndPort(target_.host, target_.port)), why);
}

Status HttpCaller::Connect(MonotonicTime until) {
  const auto left = [until] { return until - RealClock::Instance().Now(); };
  if (!address_) {
    TANDEM_ASSIGN(address_,
                  FindServer(target_.host, target_.port, std::chrono::ceil<std::chrono::milliseconds>(left())));
  }
  auto stream = OpenStream(*address_, tls_.get(), left());
  if (!stream) return Failed(stream.error().message);
  connection_ = std::make_unique<HttpConnection>(*std::move(stream));
  if (connection_->FinishConnect() != HttpConnection::ConnectResult::kReady) return Failed(connection_->WhyLost());
  return {};
}

Result<HttpAnswer> HttpCaller::Call(const HttpRequest& request, std::chrono::nanoseconds timeout) {
  return Exchange(request, RealClock::Instance().Now() + timeout, nullptr);
}

Result<HttpAnswer> HttpCaller::Listen(const HttpRequest& request, const HttpListening& listening) {
  return Exchange(request, RealClock::Instance().Now() + listening.timeout, &listening);
}

Result<HttpAnswer> HttpCaller::Exchange(const HttpRequest& request, MonotonicTime until,
                                        const HttpListening* listening) {
  const bool kept = connection_ != nullptr;
  if (!kept) TANDEM_TRY(Connect(until));
  TANDEM_ASSIGN(std::optional<HttpAnswer> answer, TryCall(request, until, listening));
  if (!answer && kept) {
    TANDEM_TRY(Connect(until));
    TANDEM_ASSIGN(answer, TryCall(request, until, listening));
  }
  if (answer) return *std::move(answer);
  const std::string why = connection_->WhyLost();
  return Failed(target_.tls() ? why : why + " without an answer; if it speaks TLS, the URL begins with https://");
}

Result<std::optional<HttpAnswer>> HttpCaller::TryCall(const HttpRequest& request, MonotonicTime until,
                                                      const HttpListening* listening) {
  HttpConnection& connection = *connection_;
  HttpResponseReader& reader = connection.reader();
  connection.Begin(request);
  std::array<char, kScratchBytes> scratch;
  bool writing = true;
  while (true) {
    if (writing) writing = connection.Flush() == HttpConnection::WriteResult::kBlocked;
    const HttpConnection::ReadResult read = connection.Receive(scratch);
    if (listening != nullptr && reader.has_head()) {
      until = RealClock::Instance().Now() + listening->max_silence;
      if (!HandOn(reader, *listening)) {
        HttpAnswer answer = Take(reader);
        connection_.reset();
        return answer;
      }
    }
    switch (read) {
      case HttpConnection::ReadResult::kMore: break;
      case HttpConnection::ReadResult::kMalformed: return Failed("the answer is not HTTP, or too large");
      case HttpConnection::ReadResult::kLost:
        if (reader.started()) return Failed("the answer was cut short: " + connection.WhyLost());
        return std::optional<HttpAnswer>();
      case HttpConnection::ReadResult::kAnswered: {
        HttpAnswer answer = Take(reader);
        const bool reusable = connection.reusable();
        connection.Finish();
        if (!reusable) connection_.reset();
        return answer;
      }
    }
    if (!WaitForSocket(connection.fd(), connection.wants_write(), until)) return Failed("no answer in time");
  }
}

}  // namespace tandem::loadgen
