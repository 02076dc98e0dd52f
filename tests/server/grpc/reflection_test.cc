#include <set>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>

#include "api/wire/proto/reflection.pb.h"
#include "tests/server/grpc/grpc_fixture.h"
#include "tests/server/grpc/raw_call.h"

namespace tandem::testing {
namespace {

namespace v1 = grpc::reflection::v1;
using grpc::StatusCode;
using ::testing::Contains;
using ::testing::UnorderedElementsAre;

constexpr const char* kV1 = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
constexpr const char* kV1Alpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// The messages of v1 and v1alpha have the same bytes.
class Reflection : public GrpcFixture {
 protected:
  static v1::ServerReflectionResponse Ask(RawCall& call, const v1::ServerReflectionRequest& question) {
    EXPECT_TRUE(call.Write(question.SerializeAsString()));
    std::string bytes;
    EXPECT_TRUE(call.Read(bytes));
    v1::ServerReflectionResponse response;
    EXPECT_TRUE(response.ParseFromString(bytes));
    return response;
  }

  v1::ServerReflectionResponse AskForSymbol(const std::string& symbol, const char* method = kV1) {
    v1::ServerReflectionRequest question;
    question.set_file_containing_symbol(symbol);
    RawCall call(channel_, method);
    v1::ServerReflectionResponse response = Ask(call, question);
    EXPECT_TRUE(call.WritesDone());
    EXPECT_TRUE(call.Finish().ok());
    return response;
  }

  static std::set<std::string> FileNames(const v1::ServerReflectionResponse& response) {
    std::set<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.insert(file.name());
    }
    return names;
  }
};

TEST_F(Reflection, ListsTheServicesInBothVersionsOfTheProtocol) {
  for (const char* method : {kV1, kV1Alpha}) {
    v1::ServerReflectionRequest question;
    question.set_host("here");
    question.set_list_services("*");
    RawCall call(channel_, method);
    const v1::ServerReflectionResponse response = Ask(call, question);
    EXPECT_EQ(response.valid_host(), "here");
    EXPECT_EQ(response.original_request().list_services(), "*");
    std::vector<std::string> names;
    for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
    EXPECT_THAT(
        names, UnorderedElementsAre("inference.GRPCInferenceService", "grpc.health.v1.Health",
                                    "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"));
  }
}

TEST_F(Reflection, DescribesTypesMethodsAndFieldsWithAllTheirFilesNeed) {
  for (const char* symbol : {"inference.GRPCInferenceService", "inference.GRPCInferenceService.ModelInfer",
                             "inference.ModelInferRequest.InferInputTensor", "inference.ModelInferRequest.id"}) {
    EXPECT_THAT(FileNames(AskForSymbol(symbol)),
                UnorderedElementsAre("api/wire/proto/inference.proto", "api/wire/proto/model_config.proto"))
        << symbol;
  }
  EXPECT_THAT(FileNames(AskForSymbol("inference.TYPE_FP32")),
              UnorderedElementsAre("api/wire/proto/model_config.proto"));
  EXPECT_THAT(FileNames(AskForSymbol("grpc.health.v1.HealthCheckResponse.ServingStatus")),
              UnorderedElementsAre("api/wire/proto/health.proto"));
}

TEST_F(Reflection, DescribesItself) {
  const v1::ServerReflectionResponse response = AskForSymbol("grpc.reflection.v1alpha.ServerReflection", kV1Alpha);
  ASSERT_EQ(response.file_descriptor_response().file_descriptor_proto_size(), 1);
  google::protobuf::FileDescriptorProto file;
  ASSERT_TRUE(file.ParseFromString(response.file_descriptor_response().file_descriptor_proto(0)));
  EXPECT_EQ(file.package(), "grpc.reflection.v1alpha");
  ASSERT_EQ(file.service_size(), 1);
  EXPECT_EQ(file.service(0).method(0).input_type(), ".grpc.reflection.v1alpha.ServerReflectionRequest");
}

TEST_F(Reflection, FilesAreFoundByNameAndUnknownOnesAreAnError) {
  RawCall call(channel_, kV1);
  v1::ServerReflectionRequest question;
  question.set_file_by_filename("api/wire/proto/health.proto");
  EXPECT_THAT(FileNames(Ask(call, question)), Contains("api/wire/proto/health.proto"));
  // Linked, but not part of the protocol.
  question.set_file_by_filename("google/protobuf/descriptor.proto");
  EXPECT_EQ(Ask(call, question).error_response().error_code(), StatusCode::NOT_FOUND);
  question.set_file_containing_symbol("no.such.Type");
  EXPECT_EQ(Ask(call, question).error_response().error_code(), StatusCode::NOT_FOUND);
  question.mutable_file_containing_extension()->set_containing_type("inference.ModelConfig");
  EXPECT_EQ(Ask(call, question).error_response().error_code(), StatusCode::NOT_FOUND);
  question.set_all_extension_numbers_of_type("inference.ModelConfig");
  EXPECT_EQ(Ask(call, question).error_response().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(Reflection, NonsenseIsAnErrorAndTheCallGoesOn) {
  RawCall call(channel_, kV1);
  EXPECT_EQ(Ask(call, {}).error_response().error_code(), StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(call.Write(std::string("\xff\xff\xff", 3)));
  std::string bytes;
  ASSERT_TRUE(call.Read(bytes));
  v1::ServerReflectionResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_EQ(response.error_response().error_code(), StatusCode::INVALID_ARGUMENT);
  v1::ServerReflectionRequest question;
  question.set_list_services("");
  EXPECT_GT(Ask(call, question).list_services_response().service_size(), 0);
  ASSERT_TRUE(call.WritesDone());
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(Reflection, AQuestionThatIsTooLongEndsTheCall) {
  v1::ServerReflectionRequest question;
  question.set_file_containing_symbol(std::string(100'000, 'x'));
  RawCall call(channel_, kV1);
  ASSERT_TRUE(call.Write(question.SerializeAsString()));
  EXPECT_EQ(call.Finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(Reflection, AnIdleCallEndsWhenTheServerDrains) {
  RawCall call(channel_, kV1);
  v1::ServerReflectionRequest question;
  question.set_list_services("");
  EXPECT_GT(Ask(call, question).list_services_response().service_size(), 0);
  server_->Drain(std::chrono::minutes(1));
  EXPECT_EQ(call.Finish().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tandem::testing
