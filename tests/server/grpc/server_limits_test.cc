#include <thread>

#include <gmock/gmock.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "api/wire/proto/health.grpc.pb.h"
#include "tests/server/grpc/grpc_fixture.h"
#include "tests/server/grpc/raw_call.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ServerLimits : public GrpcFixture {
 protected:
  grpc::Status Infer(const inference::ModelInferRequest& request,
                     grpc_compression_algorithm packed = GRPC_COMPRESS_NONE) {
    grpc::ClientContext context;
    context.set_compression_algorithm(packed);
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  grpc::Status Load(const inference::RepositoryModelLoadRequest& request, grpc_compression_algorithm packed) {
    grpc::ClientContext context;
    context.set_compression_algorithm(packed);
    inference::RepositoryModelLoadResponse response;
    return stub_->RepositoryModelLoad(&context, request, &response);
  }

  static inference::RepositoryModelLoadRequest LoadOf(std::size_t bytes) {
    inference::RepositoryModelLoadRequest load;
    load.set_model_name("sent");
    (*load.mutable_parameters())["config"].set_string_param("{}");
    (*load.mutable_parameters())["file:1/model.onnx"].set_bytes_param(std::string(bytes, 'x'));
    return load;
  }
};

TEST_F(ServerLimits, APortInUseIsNamed) {
  GrpcOptions options;
  options.port = server_->port();
  const auto second = GrpcServer::Start(options, *core_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(Target()));
}

TEST_F(ServerLimits, MessagesAboveTheLimitAreRefusedPackedOrNot) {
  GrpcOptions options;
  options.max_message_bytes = 100'000;
  Serve(options);
  inference::ModelInferRequest large = PairRequest("pair", {1, 2});
  large.set_id(std::string(200'000, 'x'));
  EXPECT_EQ(Infer(large).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  // Packed it is far below the limit, and it would unpack to twice the limit.
  EXPECT_EQ(Infer(large, GRPC_COMPRESS_GZIP).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Infer(large, GRPC_COMPRESS_DEFLATE).error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(ServerLimits, RequestsBeyondTheBytesUnderWayAreTurnedAway) {
  GrpcOptions options;
  options.max_request_bytes_under_way = 1'000;
  Serve(options);
  inference::ModelInferRequest first = PairRequest("slow", {1, 2});
  first.set_id(std::string(2'000, 'x'));
  std::jthread client([&] { EXPECT_TRUE(Infer(first).ok()); });
  slow_.WaitStarted();
  EXPECT_EQ(Infer(PairRequest("pair", {1, 2})).error_code(), StatusCode::UNAVAILABLE);
  slow_.Open();
  client.join();
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(ServerLimits, ALoadCountsWithWhatItUnpacksTo) {
  GrpcOptions options;
  options.max_request_bytes_under_way = 100'000;
  Serve(options);
  std::jthread client([&] { EXPECT_TRUE(Infer(PairRequest("slow", {1, 2})).ok()); });
  slow_.WaitStarted();
  EXPECT_TRUE(Load(LoadOf(10'000), GRPC_COMPRESS_GZIP).ok());
  EXPECT_EQ(Load(LoadOf(1'000'000), GRPC_COMPRESS_GZIP).error_code(), StatusCode::UNAVAILABLE);
  slow_.Open();
}

TEST_F(ServerLimits, MessagesWithoutTensorsOrFilesAreSmall) {
  for (const auto packed : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(packed);
    inference::ModelReadyRequest request;
    request.set_name(std::string(100'000, 'x'));
    inference::ModelReadyResponse response;
    EXPECT_EQ(stub_->ModelReady(&context, request, &response).error_code(), StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(Load(LoadOf(100'000), packed).ok());
  }
}

TEST_F(ServerLimits, AMessageOfMuchStructureIsRefusedBeforeItIsParsed) {
  for (const auto packed : {GRPC_COMPRESS_NONE, GRPC_COMPRESS_GZIP}) {
    inference::ModelInferRequest request;
    for (int i = 0; i < 100'000; ++i) request.add_inputs();
    grpc::Status status = Infer(request, packed);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("'inputs'"), HasSubstr("more than 1024")));

    inference::RepositoryModelLoadRequest load;
    for (int i = 0; i < 10'000; ++i) (*load.mutable_parameters())["file:" + std::to_string(i)];
    status = Load(load, packed);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("'parameters'"), HasSubstr("more than 8192")));
  }
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(ServerLimits, CallsThatNeedNoTokenHavePlacesOfTheirOwn) {
  GrpcOptions options;
  options.max_open_calls = 2;
  options.max_open_lasting_calls = 1;
  Serve(options);
  const auto live = [&] {
    grpc::ClientContext context;
    inference::ServerLiveResponse response;
    return stub_->ServerLive(&context, {}, &response);
  };
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  RawCall reflection(channel_, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
  EXPECT_EQ(reflection.Finish().error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(live().ok());
  {
    RawCall first(channel_, "/inference.GRPCInferenceService/ServerReady");
    RawCall second(channel_, "/grpc.health.v1.Health/Check");
    const grpc::Status third = live();
    EXPECT_EQ(third.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_THAT(third.error_message(), HasSubstr("2 calls that need no token"));
    EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
    first.Cancel();
    (void)first.Finish();
    second.Cancel();
    (void)second.Finish();
  }
  // The server may learn last that a call is over.
  while (!live().ok()) std::this_thread::yield();
}

TEST_F(ServerLimits, CallsAboveTheLimitAreTurnedAway) {
  GrpcOptions options;
  options.max_calls = 2;
  Serve(options);
  std::jthread first([&] { EXPECT_TRUE(Infer(PairRequest("slow", {1, 2})).ok()); });
  std::jthread second([&] { EXPECT_TRUE(Infer(PairRequest("slow", {1, 2})).ok()); });
  slow_.WaitStarted();
  while (dispatcher_->queued() == 0) std::this_thread::yield();
  const grpc::Status third = Infer(PairRequest("pair", {1, 2}));
  EXPECT_EQ(third.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(third.error_message(), HasSubstr("2 calls"));
  slow_.Open();
  first.join();
  second.join();
  // The server may learn last that a call is over.
  while (!Infer(PairRequest("pair", {1, 2})).ok()) std::this_thread::yield();
}

TEST_F(ServerLimits, WithoutTheTokenOnlyHealthIsOpen) {
  GrpcOptions options;
  options.allows = [](std::string_view authorization) { return authorization == "Bearer secret"; };
  Serve(options);
  EXPECT_EQ(Infer(PairRequest("pair", {1, 2})).error_code(), StatusCode::UNAUTHENTICATED);
  {
    grpc::ClientContext context;
    inference::ServerMetadataResponse response;
    EXPECT_EQ(stub_->ServerMetadata(&context, {}, &response).error_code(), StatusCode::UNAUTHENTICATED);
  }
  {
    grpc::ClientContext context;
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name("pair");
    inference::RepositoryModelUnloadResponse response;
    EXPECT_EQ(stub_->RepositoryModelUnload(&context, request, &response).error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_TRUE(repository_->IsReady("pair", ""));
  }
  {
    grpc::ClientContext context;
    const auto stream = stub_->ModelStreamInfer(&context);
    inference::ModelStreamInferResponse response;
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  }
  {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    EXPECT_TRUE(stub_->ServerReady(&context, {}, &response).ok());
  }
  {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel_)->Check(&context, {}, &response).ok());
  }
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer secret");
  inference::ModelInferResponse response;
  EXPECT_TRUE(stub_->ModelInfer(&context, PairRequest("pair", {1, 2}), &response).ok());
}

TEST_F(ServerLimits, DrainingLetsARunningRequestEndAndCancelsItAfterTheGrace) {
  {
    std::jthread client([&] { EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok()); });
  }
  std::jthread client([&] { EXPECT_FALSE(Infer(PairRequest("slow", {1, 2})).ok()); });
  slow_.WaitStarted();
  server_->Drain(std::chrono::milliseconds(1));
  slow_.WaitCancelled();
}

// A certificate authority of one's own, as PEM.
struct Identity {
  std::string key;
  std::string certificate;
};

std::string ReadAll(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

// Signed by itself, valid for "localhost".
Identity MakeIdentity() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  for (const auto& [id, value] :
       {std::pair{NID_subject_alt_name, "DNS:localhost"}, {NID_basic_constraints, "CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate, key, EVP_sha256());
  BIO* key_text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_text, key, nullptr, nullptr, 0, nullptr, nullptr);
  BIO* certificate_text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate_text, certificate);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {ReadAll(key_text), ReadAll(certificate_text)};
}

class Tls : public GrpcFixture {
 protected:
  http::TlsOptions ServerFiles(bool mutual) {
    Write("../tls/cert.pem", server_identity_.certificate);
    Write("../tls/key.pem", server_identity_.key);
    Write("../tls/ca.pem", client_identity_.certificate);
    return {.certificate = Path("../tls/cert.pem"),
            .key = Path("../tls/key.pem"),
            .client_ca = mutual ? Path("../tls/ca.pem") : ""};
  }

  grpc::Status ReadyWith(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    const auto channel =
        grpc::CreateCustomChannel("localhost:" + std::to_string(server_->port()), credentials, ChannelArguments());
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    return inference::GRPCInferenceService::NewStub(channel)->ServerReady(&context, {}, &response);
  }

  const Identity server_identity_ = MakeIdentity();
  const Identity client_identity_ = MakeIdentity();
};

TEST_F(Tls, ServesClientsThatTrustTheCertificateAndNoPlainOnes) {
  Serve({.tls = ServerFiles(false)});
  grpc::SslCredentialsOptions trusting;
  trusting.pem_root_certs = server_identity_.certificate;
  const grpc::Status status = ReadyWith(grpc::SslCredentials(trusting));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(ReadyWith(grpc::InsecureChannelCredentials()).ok());
}

TEST_F(Tls, WithAClientCaOnlyClientsWithACertificateAreServed) {
  Serve({.tls = ServerFiles(true)});
  grpc::SslCredentialsOptions client;
  client.pem_root_certs = server_identity_.certificate;
  EXPECT_FALSE(ReadyWith(grpc::SslCredentials(client)).ok());
  client.pem_cert_chain = client_identity_.certificate;
  client.pem_private_key = client_identity_.key;
  const grpc::Status status = ReadyWith(grpc::SslCredentials(client));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(Tls, AKeyThatDoesNotFitIsAnErrorAtTheStart) {
  http::TlsOptions files = ServerFiles(false);
  Write("../tls/other.pem", client_identity_.key);
  files.key = Path("../tls/other.pem");
  const auto server = GrpcServer::Start({.port = 0, .tls = files}, *core_);
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, HasSubstr("other.pem"));
}

}  // namespace
}  // namespace tandem::testing
