// The HTTP transport over TLS: whom it trusts, what it says when it does not, and that bytes arrive unchanged.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "loadgen/http_transport.h"
#include "loadgen/infer_request_bytes.h"
#include "tests/loadgen/scripted_server.h"
#include "tests/loadgen/tls_folder.h"

namespace tandem::loadgen {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

ScriptedReply Hello(int, const std::string&) {
  return ScriptedReply::Ok("hello");
}

HttpRequest Get() {
  HttpRequest request = BuildGet("localhost", 1, "/");
  request.keep_body = true;
  return request;
}

class HttpTls : public TlsFolder {
 protected:
  // A server with the certificate of that name.
  std::unique_ptr<ScriptedServer> Serve(const http::Certificate& certificate, ScriptedServer::Script script = Hello,
                                        int version = 0, const std::string& client_ca = "") {
    const ScriptedTls tls{certificate.certificate_file, certificate.key_file, client_ca, version};
    return std::make_unique<ScriptedServer>(std::move(script), ScriptedOptions{.tls = &tls});
  }

  static Result<std::unique_ptr<HttpTransport>> Connect(int port, const TlsClientOptions& tls,
                                                        HttpTransportOptions options = {},
                                                        HttpRequest request = Get()) {
    options.port = port;
    options.tls = tls;
    options.request_timeout = std::chrono::hours(1);
    std::vector<HttpRequest> requests;
    requests.push_back(std::move(request));
    return HttpTransport::Create(options, std::move(requests), RealClock::Instance());
  }

  static std::string WhyNot(int port, const TlsClientOptions& tls, const HttpTransportOptions& options = {}) {
    const auto made = Connect(port, tls, options);
    if (made) return "connected";
    EXPECT_EQ(made.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(made.error().message, HasSubstr("https://127.0.0.1:" + std::to_string(port)));
    return made.error().message;
  }
};

std::vector<RequestRecord> SendAll(HttpTransport& transport, int count) {
  for (int i = 0; i < count; ++i) transport.Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  while (transport.outstanding() > 0) {
    transport.Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  }
  return records;
}

TEST_F(HttpTls, KeepsOneConnectionForRequestsInTurnInBothVersions) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto server = Serve(own_, Hello, version);
    const auto transport = Connect(server->port(), Trusting(authority_));
    ASSERT_TRUE(transport) << transport.error().message;
    for (int i = 0; i < 20; ++i) {
      const RequestRecord record = SendAll(**transport, 1).front();
      EXPECT_EQ(record.body, "hello");
      EXPECT_LE(record.submitted, record.sent);
      EXPECT_LE(record.sent, record.first_byte);
      EXPECT_LE(record.first_byte, record.done);
    }
    // One to see whether the server is there, one to see whether it is trusted.
    EXPECT_EQ(server->connections(), 3);
  }
}

TEST_F(HttpTls, RefusesVersionsThatAreTooOld) {
  const auto server = Serve(own_, Hello, TLS1_1_VERSION);
  EXPECT_NE(WhyNot(server->port(), Trusting(authority_)), "connected");
}

TEST_F(HttpTls, CarriesLargeBodiesBothWaysUnchanged) {
  AlignedBuffer part(3 << 20);
  for (std::size_t i = 0; i < part.size(); ++i) part.data()[i] = static_cast<std::byte>(i * 7 + i / 251);
  const Bytes bytes = Bytes::Own(std::move(part));
  HttpRequest request = Get();
  request.head = "POST / HTTP/1.1\r\nContent-Length: 6291466\r\n\r\nabc";
  // Small pieces between large ones: what is joined for a record and what is not.
  request.parts = {bytes, bytes.Part(5, 3), bytes.Part(9, 4), bytes.Part(0, 0), bytes};
  std::string expected = request.head.substr(request.head.size() - 3);
  for (const Bytes& piece : request.parts) {
    expected.append(reinterpret_cast<const char*>(piece.view.data()), piece.size());
  }
  const auto server =
      Serve(own_, [](int, const std::string& got) { return ScriptedReply::Ok(got.substr(got.find("\r\n\r\n") + 4)); });
  const auto transport = Connect(server->port(), Trusting(authority_), {}, std::move(request));
  ASSERT_TRUE(transport) << transport.error().message;
  for (const RequestRecord& record : SendAll(**transport, 3)) EXPECT_TRUE(record.body == expected);
}

TEST_F(HttpTls, SharesFewConnectionsAmongManyRequests) {
  const auto server = Serve(own_);
  const auto transport = Connect(server->port(), Trusting(authority_), {.max_connections = 4});
  ASSERT_TRUE(transport) << transport.error().message;
  const std::vector<RequestRecord> records = SendAll(**transport, 300);
  EXPECT_TRUE(std::ranges::all_of(records, [](const auto& record) { return record.body == "hello"; }));
  EXPECT_LE(server->connections(), 6);
}

TEST_F(HttpTls, OpensConnectionsAhead) {
  const auto server = Serve(own_);
  const auto transport = Connect(server->port(), Trusting(authority_), {.max_connections = 8});
  ASSERT_TRUE(transport) << transport.error().message;
  (*transport)->OpenConnections(8);
  for (const RequestRecord& record : SendAll(**transport, 8)) EXPECT_FALSE(record.queued);
  EXPECT_EQ(server->connections(), 10);
}

TEST_F(HttpTls, SaysWhyAServerIsNotTrusted) {
  const auto server = Serve(own_);
  EXPECT_THAT(WhyNot(server->port(), Trusting(stranger_)), HasSubstr("is not trusted: "));
  EXPECT_THAT(WhyNot(server->port(), {}), HasSubstr("is not trusted: "));
  TlsClientOptions renamed = Trusting(authority_);
  renamed.server_name = "example.org";
  EXPECT_THAT(WhyNot(server->port(), renamed), HasSubstr("certificate is not for 'example.org'"));
  renamed.server_name = "127.0.0.2";
  EXPECT_THAT(WhyNot(server->port(), renamed), HasSubstr("certificate is not for '127.0.0.2'"));
  renamed.server_name = "localhost";
  EXPECT_EQ(WhyNot(server->port(), renamed), "connected");
}

TEST_F(HttpTls, SaysThatACertificateHasExpired) {
  const auto expired =
      http::MakeCertificate(folder_, "expired", &authority_,
                            {.alternative_names = "DNS:localhost,IP:127.0.0.1", .begins_in = -7200, .ends_in = -3600});
  const auto server = Serve(expired);
  EXPECT_THAT(WhyNot(server->port(), Trusting(authority_)), HasSubstr("the server's certificate has expired"));
}

TEST_F(HttpTls, ACertificateWithoutTheAddressIsForSomebodyElse) {
  const auto elsewhere =
      http::MakeCertificate(folder_, "elsewhere", &authority_, {.alternative_names = "DNS:localhost"});
  const auto server = Serve(elsewhere);
  EXPECT_THAT(WhyNot(server->port(), Trusting(authority_)), HasSubstr("certificate is not for '127.0.0.1'"));
}

TEST_F(HttpTls, TakesAnyCertificateWhenToldTo) {
  const auto expired = http::MakeCertificate(folder_, "expired", &stranger_, {.begins_in = -7200, .ends_in = -3600});
  const auto server = Serve(expired);
  EXPECT_EQ(WhyNot(server->port(), {.verify = false}), "connected");
}

TEST_F(HttpTls, SaysThatAServerDoesNotSpeakTls) {
  ScriptedServer plain([](int, const std::string&) { return ScriptedReply::Ok(); });
  // It never sees the end of a request in what is no HTTP.
  EXPECT_THAT(WhyNot(plain.port(), {}, {.connect_timeout = milliseconds(50)}), HasSubstr("does the server speak TLS?"));
  const Listener talks("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(WhyNot(talks.port(), {}), HasSubstr("the server does not speak TLS"));
  const Listener closes("");
  EXPECT_THAT(WhyNot(closes.port(), {}),
              ::testing::AnyOf(HasSubstr("does it speak TLS?"), HasSubstr("Connection reset")));
}

TEST_F(HttpTls, ShowsItsOwnCertificateWhereOneIsWanted) {
  const auto good = http::MakeCertificate(folder_, "good", &authority_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto server = Serve(own_, Hello, version, authority_.certificate_file);
    TlsClientOptions tls = Trusting(authority_);
    const auto nameless = Connect(server->port(), tls);
    // In TLS 1.3 the client learns of the refusal only when it reads.
    EXPECT_EQ(nameless.has_value(), version == TLS1_3_VERSION);
    if (nameless) {
      EXPECT_NE(SendAll(**nameless, 1).front().outcome, TransportOutcome::kAnswered);
    }
    tls.cert_file = good.certificate_file;
    tls.key_file = good.key_file;
    const auto known = Connect(server->port(), tls);
    ASSERT_TRUE(known) << known.error().message;
    EXPECT_EQ(SendAll(**known, 1).front().body, "hello");
  }
}

TEST_F(HttpTls, FilesThatCannotBeUsedAreErrorsThatNameThem) {
  const auto error = [](const TlsClientOptions& tls) {
    const auto made = TlsClient::Create(tls, "localhost", "http/1.1");
    EXPECT_FALSE(made);
    if (made) return std::string();
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    return made.error().message;
  };
  const auto& cert = own_.certificate_file;
  EXPECT_THAT(error({.ca_file = "/none.ca"}), HasSubstr("/none.ca"));
  EXPECT_THAT(error({.ca_file = folder_.string()}), HasSubstr(folder_.string()));
  EXPECT_THAT(error({.ca_file = "/dev/zero"}), HasSubstr("/dev/zero"));
  EXPECT_THAT(error({.ca_file = own_.key_file}), HasSubstr("server.key"));
  EXPECT_THAT(error({.cert_file = "/none.pem", .key_file = own_.key_file}), HasSubstr("/none.pem"));
  EXPECT_THAT(error({.cert_file = cert, .key_file = "/none.key"}), HasSubstr("/none.key"));
  EXPECT_THAT(error({.cert_file = cert, .key_file = stranger_.key_file}), HasSubstr("stranger.key"));
  EXPECT_THAT(error({.cert_file = cert}), HasSubstr("needs its key"));
  EXPECT_THAT(error({.key_file = own_.key_file}), HasSubstr("server.key"));
}

TEST_F(HttpTls, SendsAgainWhenAnIdleConnectionHadBeenClosed) {
  const auto server = Serve(own_, [](int, const std::string&) {
    ScriptedReply reply = ScriptedReply::Ok();
    reply.close = true;
    return reply;
  });
  const auto transport = Connect(server->port(), Trusting(authority_));
  ASSERT_TRUE(transport) << transport.error().message;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(SendAll(**transport, 1).front().status, 200);
}

TEST_F(HttpTls, ABodyThatEndsWithTheConnectionNeedsTheServersGoodBye) {
  for (const bool abrupt : {false, true}) {
    const auto server = Serve(own_, [abrupt](int, const std::string&) {
      return ScriptedReply{.bytes = "HTTP/1.1 200 OK\r\n\r\nall there is", .close = true, .abrupt = abrupt};
    });
    const auto transport = Connect(server->port(), Trusting(authority_));
    ASSERT_TRUE(transport) << transport.error().message;
    const RequestRecord record = SendAll(**transport, 1).front();
    EXPECT_EQ(record.outcome, abrupt ? TransportOutcome::kConnectionLost : TransportOutcome::kAnswered);
  }
}

TEST_F(HttpTls, AServerThatGoesAwayCostsItsRequestsOnly) {
  auto server = Serve(own_);
  const auto transport = Connect(server->port(), Trusting(authority_));
  ASSERT_TRUE(transport) << transport.error().message;
  EXPECT_EQ(SendAll(**transport, 5).front().status, 200);
  server.reset();
  for (const RequestRecord& record : SendAll(**transport, 10)) EXPECT_NE(record.outcome, TransportOutcome::kAnswered);
}

TEST_F(HttpTls, MoreThanTheAnswerEndsTheConnection) {
  const auto server = Serve(own_, [](int, const std::string&) {
    ScriptedReply reply = ScriptedReply::Ok();
    reply.bytes += "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
    return reply;
  });
  const auto transport = Connect(server->port(), Trusting(authority_));
  ASSERT_TRUE(transport) << transport.error().message;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(SendAll(**transport, 1).front().status, 200);
}

}  // namespace
}  // namespace tandem::loadgen
