#include "server/http/tls.h"

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "tests/server/http/server_fixture.h"
#include "tests/server/http/tls_certificates.h"

namespace tandem::http {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// A blocking TLS client that verifies the server against `trusted`.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const Certificate& trusted, const Certificate* own = nullptr,
            int version = TLS1_3_VERSION)
      : socket_(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), trusted.certificate.get());
    if (own != nullptr) {
      SSL_CTX_use_certificate(context_.get(), own->certificate.get());
      SSL_CTX_use_PrivateKey(context_.get(), own->key.get());
    }
    ssl_.reset(SSL_new(context_.get()), SSL_free);
    SSL_set_fd(ssl_.get(), socket_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }

  [[nodiscard]] bool connected() const { return connected_; }

  bool Send(std::string_view text) {
    std::size_t n = 0;
    while (!text.empty()) {
      if (SSL_write_ex(ssl_.get(), text.data(), text.size(), &n) != 1) return false;
      text.remove_prefix(n);
    }
    return true;
  }

  // Up to the end of the answer or of the connection.
  std::string Read(std::string_view last) {
    std::string all;
    char bytes[16384];
    std::size_t n = 0;
    while (!all.ends_with(last) && SSL_read_ex(ssl_.get(), bytes, sizeof bytes, &n) == 1) all.append(bytes, n);
    return all;
  }

 private:
  RawClient socket_;
  std::shared_ptr<SSL_CTX> context_;
  std::shared_ptr<SSL> ssl_;
  bool connected_ = false;
};

class TlsTest : public ServerFixture {
 protected:
  void SetUp() override {
    std::string folder = std::filesystem::temp_directory_path() / "tandem-tls-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    authority_ = MakeCertificate(folder_, "authority");
    stranger_ = MakeCertificate(folder_, "stranger");
    own_ = MakeCertificate(folder_, "server", &authority_);
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void StartTls(const std::string& client_ca = "") {
    ServerOptions options = Options(clock_);
    options.tls = TlsOptions{own_.certificate_file, own_.key_file, client_ca};
    Start(std::move(options));
  }

  std::filesystem::path folder_;
  Certificate authority_, stranger_, own_;
};

TEST_F(TlsTest, AnswersOverBothVersions) {
  StartTls();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server_->port(), authority_, nullptr, version);
    ASSERT_TRUE(client.connected());
    for (int i = 0; i < 3; ++i) {
      client.Send(Post("/a", "body"));
      EXPECT_THAT(client.Read("/abody"), HasSubstr("200 OK"));
    }
  }
}

TEST_F(TlsTest, RefusesOldVersions) {
  StartTls();
  EXPECT_FALSE(TlsClient(server_->port(), authority_, nullptr, TLS1_1_VERSION).connected());
}

TEST_F(TlsTest, TakesALateAnswer) {
  StartTls();
  TlsClient client(server_->port(), authority_);
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  exchange->Respond(JsonResponse(200, "done"));
  EXPECT_THAT(client.Read("done"), HasSubstr("200 OK"));
}

TEST_F(TlsTest, CarriesLargeBodiesAndPipelinedRequests) {
  StartTls();
  TlsClient client(server_->port(), authority_);
  std::string body(3'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761u >> 13);
  client.Send(Get("/keep") + Get("/small") + Post("/big", body) + Get("/last"));
  NextKept()->Respond(JsonResponse(200, "kept"));
  const std::string all = client.Read("/last");
  EXPECT_THAT(all.substr(0, 1000), HasSubstr("kept"));
  EXPECT_NE(all.find("/big" + body), std::string::npos);
}

TEST_F(TlsTest, ClientWithoutTheRightCertificateIsRefused) {
  StartTls(authority_.certificate_file);
  const Certificate good = MakeCertificate(folder_, "good", &authority_);
  const Certificate bad = MakeCertificate(folder_, "bad", &stranger_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient welcome(server_->port(), authority_, &good, version);
    welcome.Send(Get("/a"));
    EXPECT_THAT(welcome.Read("/a"), HasSubstr("200 OK"));
    for (const Certificate* wrong : std::initializer_list<const Certificate*>{nullptr, &bad, &stranger_}) {
      // In TLS 1.3 the client learns of the refusal only when it reads.
      TlsClient client(server_->port(), authority_, wrong, version);
      client.Send(Get("/a"));
      EXPECT_EQ(client.Read("/a"), "");
    }
  }
  EXPECT_EQ(server_->requests(), 2u);
}

TEST_F(TlsTest, PlainTextAndGarbageOnlyCostTheirConnection) {
  StartTls();
  for (int i = 0; i < 20; ++i) {
    RawClient client(server_->port());
    client.Send(i % 2 == 0 ? Get("/a") : std::string(500, static_cast<char>(i)));
    client.HalfClose();
    client.ReadToEnd();
  }
  ASSERT_TRUE(EventuallyConnections(0));
  TlsClient client(server_->port(), authority_);
  client.Send(Get("/a"));
  EXPECT_THAT(client.Read("/a"), HasSubstr("200 OK"));
}

TEST_F(TlsTest, AHandshakeThatIsNeverFinishedIsCutOff) {
  StartTls();
  RawClient client(server_->port());
  client.Send("\x16\x03\x01");
  ASSERT_TRUE(EventuallyConnections(1));
  PassTimeUntilReadable(client, 11s);
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(TlsTest, AReaderThatStopsReadingIsCutOff) {
  StartTls();
  TlsClient client(server_->port(), authority_);
  client.Send(Get("/keep"));
  Response response;
  response.body.assign(50'000'000, 'x');
  NextKept()->Respond(std::move(response));
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(31s);
    return server_->connections() == 0;
  }));
}

TEST_F(TlsTest, VanishingCancelsTheWork) {
  StartTls();
  auto client = std::make_unique<TlsClient>(server_->port(), authority_);
  client->Send(Get("/keep"));
  const auto exchange = NextKept();
  client.reset();
  EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
}

TEST_F(TlsTest, FilesThatCannotBeUsedAreErrorsThatNameThem) {
  const auto error = [](const TlsOptions& options) { return TlsContext::Create(options).error().message; };
  EXPECT_THAT(error({"/none.pem", own_.key_file, ""}), HasSubstr("/none.pem"));
  EXPECT_THAT(error({own_.certificate_file, "/none.key", ""}), HasSubstr("/none.key"));
  EXPECT_THAT(error({own_.certificate_file, stranger_.key_file, ""}), HasSubstr("stranger.key"));
  EXPECT_THAT(error({own_.certificate_file, own_.key_file, "/none.ca"}), HasSubstr("/none.ca"));
}

}  // namespace
}  // namespace tandem::http
