#include "loadgen/grpc_transport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "api/wire/proto/inference.grpc.pb.h"
#include "tests/loadgen/tls_folder.h"

namespace tandem::loadgen {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A gRPC server that does what it is told, on an ephemeral port of the loopback. The script runs on threads of gRPC's.
class ScriptedGrpcServer final : private inference::GRPCInferenceService::CallbackService {
 public:
  using Script = std::function<grpc::Status(const grpc::CallbackServerContext&, const inference::ModelInferRequest&,
                                            inference::ModelInferResponse&)>;

  explicit ScriptedGrpcServer(Script script,
                              std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials())
      : script_(std::move(script)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedGrpcServer() override {
    Release();
    server_->Shutdown(std::chrono::system_clock::now() + milliseconds(100));
    server_->Wait();
  }

  [[nodiscard]] int port() const { return port_; }

  // Between these, calls are kept; held() says how many are.
  void Hold() {
    MutexLock lock(mu_);
    holding_ = true;
  }
  void Release() {
    std::vector<std::function<void()>> kept;
    {
      MutexLock lock(mu_);
      holding_ = false;
      kept.swap(kept_);
    }
    for (const auto& answer : kept) answer();
  }
  [[nodiscard]] std::size_t held() {
    MutexLock lock(mu_);
    return kept_.size();
  }

 private:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const inference::ModelInferRequest* request,
                                       inference::ModelInferResponse* response) override {
    auto* reactor = context->DefaultReactor();
    auto answer = [this, context, request, response, reactor] {
      reactor->Finish(script_(*context, *request, *response));
    };
    {
      MutexLock lock(mu_);
      if (holding_) {
        kept_.push_back(std::move(answer));
        return reactor;
      }
    }
    answer();
    return reactor;
  }

  const Script script_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  bool holding_ GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> kept_ GUARDED_BY(mu_);
};

grpc::Status Echo(const grpc::CallbackServerContext&, const inference::ModelInferRequest& request,
                  inference::ModelInferResponse& response) {
  response.set_model_name(request.model_name());
  return grpc::Status::OK;
}

std::unique_ptr<GrpcTransport> Connect(GrpcTransportOptions options, GrpcInferRequest request = {.model = "m"},
                                       std::chrono::nanoseconds timeout = hours(1)) {
  options.request_timeout = timeout;
  auto made = GrpcTransport::Create(options, {std::move(request)}, RealClock::Instance());
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

std::vector<RequestRecord> SendAll(GrpcTransport& transport, int count) {
  for (int i = 0; i < count; ++i) transport.Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  while (transport.outstanding() > 0) {
    transport.Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  }
  EXPECT_EQ(records.size(), static_cast<std::size_t>(count));
  return records;
}

Tensor Floats(const std::vector<float>& values) {
  AlignedBuffer buffer(values.size() * sizeof(float));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return {.name = "x",
          .type = DataType::kFp32,
          .shape = {1, static_cast<std::int64_t>(values.size())},
          .data = Bytes::Own(std::move(buffer))};
}

TEST(GrpcTransport, TellsTheServerAllThatTheRequestSays) {
  Mutex mu;
  inference::ModelInferRequest seen;
  std::multimap<std::string, std::string> metadata;
  ScriptedGrpcServer server([&](const auto& context, const auto& request, auto&) {
    MutexLock lock(mu);
    seen = request;
    for (const auto& [name, value] : context.client_metadata()) {
      metadata.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
    }
    return grpc::Status::OK;
  });
  const auto transport =
      Connect({.port = server.port()}, {.model = "m",
                                        .version = "3",
                                        .inputs = {Floats({1, 2})},
                                        .outputs = {"y"},
                                        .slo_ms = 12.5,
                                        .priority = 2,
                                        .metadata = {{"authorization", "Bearer t"}, {"x-slo-ms", "12.5"}}});
  EXPECT_EQ(SendAll(*transport, 1).front().status, 200);
  MutexLock lock(mu);
  EXPECT_EQ(seen.model_name(), "m");
  EXPECT_EQ(seen.model_version(), "3");
  ASSERT_EQ(seen.inputs_size(), 1);
  EXPECT_EQ(seen.inputs(0).name(), "x");
  EXPECT_EQ(seen.inputs(0).datatype(), "FP32");
  EXPECT_EQ(seen.raw_input_contents(0).size(), 8U);
  ASSERT_EQ(seen.outputs_size(), 1);
  EXPECT_EQ(seen.outputs(0).name(), "y");
  EXPECT_EQ(seen.parameters().at("slo_ms").double_param(), 12.5);
  EXPECT_EQ(seen.parameters().at("priority").uint64_param(), 2U);
  EXPECT_EQ(metadata.find("authorization")->second, "Bearer t");
  EXPECT_EQ(metadata.find("x-slo-ms")->second, "12.5");
}

TEST(GrpcTransport, KeepsTheAnswerWhenAskedTo) {
  ScriptedGrpcServer server(Echo);
  for (const bool keep : {false, true}) {
    const auto transport = Connect({.port = server.port()}, {.model = "name", .keep_body = keep});
    const RequestRecord record = SendAll(*transport, 1).front();
    EXPECT_GT(record.bytes, 0U);
    EXPECT_EQ(record.body.size(), keep ? record.bytes : 0U);
    inference::ModelInferResponse response;
    EXPECT_TRUE(response.ParseFromString(record.body));
    EXPECT_EQ(response.model_name(), keep ? "name" : "");
    EXPECT_LE(record.submitted, record.sent);
    EXPECT_LE(record.sent, record.first_byte);
    EXPECT_EQ(record.first_byte, record.done);
  }
}

TEST(GrpcTransport, WhatTheServerSaysStandsAsItsHttpStatus) {
  std::atomic<grpc::StatusCode> code = grpc::StatusCode::OK;
  ScriptedGrpcServer server([&](const auto&, const auto&, auto&) { return grpc::Status(code.load(), "so be it"); });
  const auto transport = Connect({.port = server.port()});
  for (const auto& [given, status] : std::vector<std::pair<grpc::StatusCode, int>>{
           {grpc::StatusCode::INVALID_ARGUMENT, 400},
           {grpc::StatusCode::UNAUTHENTICATED, 401},
           {grpc::StatusCode::PERMISSION_DENIED, 403},
           {grpc::StatusCode::NOT_FOUND, 404},
           {grpc::StatusCode::FAILED_PRECONDITION, 409},
           {grpc::StatusCode::CANCELLED, 499},
           {grpc::StatusCode::INTERNAL, 500},
           {grpc::StatusCode::UNIMPLEMENTED, 501},
           {grpc::StatusCode::RESOURCE_EXHAUSTED, 503},
           {grpc::StatusCode::UNAVAILABLE, 503},
           // The SLO that the request carries has passed; ours has not.
           {grpc::StatusCode::DEADLINE_EXCEEDED, 503},
       }) {
    code = given;
    const RequestRecord record = SendAll(*transport, 1).front();
    EXPECT_EQ(record.outcome, TransportOutcome::kAnswered) << given;
    EXPECT_EQ(record.status, status) << given;
  }
}

TEST(GrpcTransport, HoldsManyCallsUnderWay) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port(), .channels = 2});
  for (int i = 0; i < 500; ++i) transport->Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  while (server.held() < 500) transport->Poll(RealClock::Instance().Now() + milliseconds(1), records);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(transport->outstanding(), 500U);
  server.Release();
  while (transport->outstanding() > 0) transport->Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  EXPECT_EQ(records.size(), 500U);
}

TEST(GrpcTransport, WhatIsMoreThanItsBoundWaitsInOrder) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port(), .max_calls = 3});
  for (int i = 0; i < 10; ++i) transport->Send(0, MonotonicTime(std::chrono::nanoseconds(i)));
  std::vector<RequestRecord> records;
  while (server.held() < 3) transport->Poll(RealClock::Instance().Now() + milliseconds(1), records);
  EXPECT_EQ(transport->outstanding(), 10U);
  EXPECT_TRUE(records.empty());
  server.Release();
  while (transport->outstanding() > 0) transport->Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  ASSERT_EQ(records.size(), 10U);
  std::ranges::sort(records, {}, &RequestRecord::scheduled);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(records[i].status, 200);
    EXPECT_EQ(records[i].queued, i >= 3);
    if (i > 0) {
      EXPECT_LE(records[i - 1].sent, records[i].sent);
    }
  }
}

TEST(GrpcTransport, WhatWaitsForTooLongTimesOutAsWell) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port(), .max_calls = 1}, {.model = "m"}, milliseconds(50));
  for (const RequestRecord& record : SendAll(*transport, 5)) {
    EXPECT_EQ(record.outcome, TransportOutcome::kTimedOut);
    EXPECT_GE(record.done - record.submitted, milliseconds(49));
  }
}

TEST(GrpcTransport, EveryChannelIsAConnection) {
  std::multiset<std::string> peers;
  Mutex mu;
  ScriptedGrpcServer server([&](const auto& context, const auto&, auto&) {
    MutexLock lock(mu);
    peers.insert(context.peer());
    return grpc::Status::OK;
  });
  const auto transport = Connect({.port = server.port(), .channels = 3});
  SendAll(*transport, 9);
  MutexLock lock(mu);
  EXPECT_EQ(std::set(peers.begin(), peers.end()).size(), 3U);
  for (const std::string& peer : peers) EXPECT_EQ(peers.count(peer), 3U);
}

TEST(GrpcTransport, PollWaitsNoLongerThanItIsTold) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port()});
  transport->Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  const MonotonicTime until = RealClock::Instance().Now() + milliseconds(5);
  while (RealClock::Instance().Now() < until) transport->Poll(until, records);
  transport->Poll(MonotonicTime{}, records);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(transport->outstanding(), 1U);
}

TEST(GrpcTransport, GivesUpAfterTheTimeout) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port()}, {.model = "m"}, milliseconds(50));
  for (const RequestRecord& record : SendAll(*transport, 3)) {
    EXPECT_EQ(record.outcome, TransportOutcome::kTimedOut);
    EXPECT_EQ(record.status, 0);
    EXPECT_GE(record.done - record.submitted, milliseconds(49));
  }
}

TEST(GrpcTransport, LeavesCallsThatAreUnderWay) {
  ScriptedGrpcServer server(Echo);
  server.Hold();
  const auto transport = Connect({.port = server.port()});
  for (int i = 0; i < 10; ++i) transport->Send(0, RealClock::Instance().Now());
}

TEST(GrpcTransport, FailsCallsWhoseServerHasGoneAway) {
  auto server = std::make_unique<ScriptedGrpcServer>(Echo);
  const auto transport = Connect({.port = server->port()});
  EXPECT_EQ(SendAll(*transport, 1).front().status, 200);
  server.reset();
  for (const RequestRecord& record : SendAll(*transport, 5)) {
    EXPECT_TRUE(record.outcome == TransportOutcome::kConnectFailed ||
                record.outcome == TransportOutcome::kConnectionLost)
        << TransportOutcomeName(record.outcome);
    EXPECT_EQ(record.status, 0);
  }
}

TEST(GrpcTransport, SaysWhyAServerCannotBeUsed) {
  const auto error = [](const GrpcTransportOptions& options, const GrpcInferRequest& request = {.model = "m"}) {
    const auto made = GrpcTransport::Create(options, {request}, RealClock::Instance());
    EXPECT_FALSE(made);
    return made ? Error{} : made.error();
  };
  int gone = 0;
  {
    ScriptedGrpcServer server(Echo);
    gone = server.port();
  }
  EXPECT_THAT(error({.port = gone}).message, HasSubstr("cannot connect to 127.0.0.1:" + std::to_string(gone)));
  const Listener other("HTTP/1.1 400 Bad Request\r\n\r\n");
  const Error unknown = error({.port = other.port(), .connect_timeout = milliseconds(300)});
  EXPECT_EQ(unknown.code, ErrorCode::kUnavailable);
  EXPECT_THAT(unknown.message, HasSubstr("does not speak gRPC"));
  for (const Error& wrong :
       {error({.port = 0}), error({.port = gone, .channels = 0}), error({.port = gone, .channels = 9999}),
        error({.port = gone, .max_calls = 0}), error({.port = gone, .request_timeout = std::chrono::seconds(0)})}) {
    EXPECT_EQ(wrong.code, ErrorCode::kInvalidArgument) << wrong.message;
  }
}

TEST(GrpcTransport, RefusesMetadataThatCannotBeSent) {
  ScriptedGrpcServer server(Echo);
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"", "v"},
                                                                                    {"Upper", "v"},
                                                                                    {"a b", "v"},
                                                                                    {":path", "v"},
                                                                                    {"grpc-timeout", "v"},
                                                                                    {"a-bin", "v"},
                                                                                    {"token", "line\nbreak"},
                                                                                    {"token", "n\xc3\xa4me"},
                                                                                    {"token", std::string("\0", 1)}}) {
    const auto made = GrpcTransport::Create({.port = server.port()}, {{.model = "m", .metadata = {{name, value}}}},
                                            RealClock::Instance());
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().message, HasSubstr("'" + name + "'"));
  }
}

class GrpcTls : public TlsFolder {
 protected:
  static std::string Read(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  static std::shared_ptr<grpc::ServerCredentials> Credentials(const http::Certificate& certificate,
                                                              const http::Certificate* client_ca = nullptr) {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({Read(certificate.key_file), Read(certificate.certificate_file)});
    if (client_ca != nullptr) {
      options.pem_root_certs = Read(client_ca->certificate_file);
      options.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    }
    return grpc::SslServerCredentials(options);
  }

  static std::string WhyNot(int port, const TlsClientOptions& tls) {
    const auto made = GrpcTransport::Create({.port = port, .connect_timeout = milliseconds(20'000), .tls = tls},
                                            {{.model = "m"}}, RealClock::Instance());
    return made ? "connected" : made.error().message;
  }
};

TEST_F(GrpcTls, AsksAServerThatItTrusts) {
  ScriptedGrpcServer server(Echo, Credentials(own_));
  for (const auto& [host, name] : {std::pair{"127.0.0.1", ""}, {"localhost", ""}, {"127.0.0.1", "localhost"}}) {
    TlsClientOptions tls = Trusting(authority_);
    tls.server_name = name;
    const auto transport = Connect({.host = host, .port = server.port(), .channels = 2, .tls = tls});
    for (const RequestRecord& record : SendAll(*transport, 4)) EXPECT_EQ(record.status, 200);
  }
}

TEST_F(GrpcTls, SaysWhyAServerIsNotTrusted) {
  ScriptedGrpcServer server(Echo, Credentials(own_));
  EXPECT_THAT(WhyNot(server.port(), Trusting(stranger_)), HasSubstr("is not trusted"));
  TlsClientOptions renamed = Trusting(authority_);
  renamed.server_name = "example.org";
  EXPECT_THAT(WhyNot(server.port(), renamed), HasSubstr("is not for 'example.org'"));
  EXPECT_THAT(WhyNot(server.port(), {.ca_file = "/none.ca"}), HasSubstr("/none.ca"));
  ScriptedGrpcServer plain(Echo);
  EXPECT_THAT(WhyNot(plain.port(), Trusting(authority_)), HasSubstr("TLS"));
}

TEST_F(GrpcTls, TakesAnyCertificateWhenToldTo) {
  ScriptedGrpcServer server(Echo, Credentials(stranger_));
  const auto transport = Connect({.port = server.port(), .tls = TlsClientOptions{.verify = false}});
  ASSERT_NE(transport, nullptr);
  EXPECT_EQ(SendAll(*transport, 1).front().status, 200);
}

TEST_F(GrpcTls, ShowsItsOwnCertificateWhereOneIsWanted) {
  const auto good = http::MakeCertificate(folder_, "good", &authority_);
  ScriptedGrpcServer server(Echo, Credentials(own_, &authority_));
  TlsClientOptions tls = Trusting(authority_);
  tls.cert_file = good.certificate_file;
  tls.key_file = good.key_file;
  for (const bool verify : {true, false}) {
    tls.verify = verify;
    const auto transport = Connect({.port = server.port(), .tls = tls});
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(SendAll(*transport, 1).front().status, 200);
  }
}

}  // namespace
}  // namespace tandem::loadgen
