#include <thread>

#include <gmock/gmock.h>

#include "tests/server/grpc/busy_bulk.h"
#include "tests/server/grpc/grpc_fixture.h"
#include "tests/server/grpc/raw_call.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kModelInfer = "/inference.GRPCInferenceService/ModelInfer";
constexpr const char* kModelStreamInfer = "/inference.GRPCInferenceService/ModelStreamInfer";

// Calls that do not go as a well-behaved client's do. That none is left over is what each one's end shows: the server
// does not stop before its last call has.
class CallLifetime : public GrpcFixture {
 protected:
  bool Answers() {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, PairRequest("pair", {1, 2}), &response).ok();
  }

  // Bytes that are parsed on the bulk thread.
  static std::string LargeRequest(const std::string& model) {
    inference::ModelInferRequest request = PairRequest(model, {1, 2});
    request.set_id(std::string(2'000'000, 'x'));
    return request.SerializeAsString();
  }
};

TEST_F(CallLifetime, AnUnknownMethodIsNamed) {
  for (const char* method : {"/inference.GRPCInferenceService/NoSuchCall", "/no.such.Service/ModelInfer", "/x", "/"}) {
    RawCall call(channel_, method);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr(method));
  }
  EXPECT_TRUE(Answers());
}

TEST_F(CallLifetime, AMethodsNameIsNotRepeatedAtAnyLength) {
  RawCall call(channel_, "/" + std::string(4'000, 'x'));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_LT(status.error_message().size(), 400U);
}

TEST_F(CallLifetime, ACallWithoutAnyMessageIsTheClientsMistake) {
  for (const char* method : {"ModelInfer", "ServerLive", "RepositoryModelUnload"}) {
    RawCall call(channel_, std::string("/inference.GRPCInferenceService/") + method);
    ASSERT_TRUE(call.WritesDone());
    EXPECT_EQ(call.Finish().error_code(), StatusCode::INVALID_ARGUMENT) << method;
  }
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.WritesDone());
  EXPECT_EQ(watch.Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  RawCall stream(channel_, kModelStreamInfer);
  ASSERT_TRUE(stream.WritesDone());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(CallLifetime, OfTwoMessagesOnAUnaryCallTheFirstIsAnswered) {
  RawCall call(channel_, kModelInfer);
  ASSERT_TRUE(call.Write(PairRequest("pair", {1, 2}).SerializeAsString()));
  // The call may be over before it is sent.
  (void)call.Write(PairRequest("pair", {3, 4}).SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(call.Read(bytes));
  inference::ModelInferResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_THAT(Floats(response.raw_output_contents(0)), ElementsAre(2, 4));
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(Answers());
}

TEST_F(CallLifetime, ManyThatAreCancelledAtAnyMomentLeaveNothingBehind) {
  const std::string request = PairRequest("pair", {1, 2}).SerializeAsString();
  for (int i = 0; i < 300; ++i) {
    RawCall call(channel_, i % 3 == 0 ? kModelStreamInfer : kModelInfer);
    if (i % 2 == 0) {
      ASSERT_TRUE(call.Write(request));
    }
    if (i % 5 == 0) std::this_thread::yield();
    call.Cancel();
    (void)call.Finish();
  }
  EXPECT_TRUE(Answers());
  // Not before all of them have ended.
  server_->Drain(std::chrono::minutes(1));
  EXPECT_EQ(dispatcher_->queued(), 0U);
  EXPECT_EQ(inference_->in_flight(), 0);
}

TEST_F(CallLifetime, ManyThatAreCancelledWhileTheyRunLeaveNothingBehind) {
  const std::string request = PairRequest("slow", {1, 2}).SerializeAsString();
  for (int i = 1; i <= 50; ++i) {
    RawCall call(channel_, i % 2 == 0 ? kModelStreamInfer : kModelInfer);
    ASSERT_TRUE(call.Write(request));
    slow_.WaitStarted(i);
    call.Cancel();
    slow_.WaitCancelled(i);
    EXPECT_EQ(call.Finish().error_code(), StatusCode::CANCELLED);
  }
  server_->Drain(std::chrono::minutes(1));
  while (inference_->in_flight() > 0) std::this_thread::yield();
}

TEST_F(CallLifetime, ALargeStreamMessageWhoseClientIsGoneWhenItIsParsedIsDropped) {
  const std::string request = LargeRequest("slow");
  for (int i = 0; i < 20; ++i) {
    const BusyBulk busy(bulk_);
    RawCall call(channel_, kModelStreamInfer);
    ASSERT_TRUE(call.Write(request));
    Pause(i % 5 * 5);
    call.Cancel();
    EXPECT_EQ(call.Finish().error_code(), StatusCode::CANCELLED);
    Pause(i % 3 * 10);
  }
  slow_.Open();
  EXPECT_TRUE(Answers());
  server_->Drain(std::chrono::minutes(1));
}

TEST_F(CallLifetime, ALargeStreamMessageThatADrainingServerHasNotParsedIsDropped) {
  const std::string request = LargeRequest("slow");
  for (int i = 0; i < 5; ++i) {
    Serve({});
    std::jthread drain;
    {
      const BusyBulk busy(bulk_);
      RawCall call(channel_, kModelStreamInfer);
      ASSERT_TRUE(call.Write(request));
      Pause(20);
      drain = std::jthread([&] { server_->Drain(std::chrono::minutes(1)); });
      EXPECT_EQ(call.Finish().error_code(), StatusCode::UNAVAILABLE);
      Pause(10);
    }
  }
  EXPECT_EQ(slow_.started(), 0);
  EXPECT_EQ(inference_->in_flight(), 0);
}

TEST_F(CallLifetime, ALargeRequestWhoseClientIsGoneWhenItIsParsedIsNotRun) {
  {
    const BusyBulk busy(bulk_);
    RawCall call(channel_, kModelInfer);
    ASSERT_TRUE(call.Write(LargeRequest("slow")));
    Pause(50);
    call.Cancel();
    EXPECT_EQ(call.Finish().error_code(), StatusCode::CANCELLED);
    Pause(50);
  }
  EXPECT_TRUE(Answers());
  server_->Drain(std::chrono::minutes(1));
  EXPECT_EQ(slow_.started(), 0);
}

TEST_F(CallLifetime, ARequestsTimeCountsFromItsArrivalAlsoWhileItWaitsToBeParsed) {
  inference::ModelInferRequest request;
  ASSERT_TRUE(request.ParseFromString(LargeRequest("pair")));
  (*request.mutable_parameters())["timeout"].set_int64_param(50'000);
  RawCall call(channel_, kModelInfer);
  {
    const BusyBulk busy(bulk_);
    ASSERT_TRUE(call.Write(request.SerializeAsString()));
    Pause(400);
  }
  std::string answer;
  EXPECT_FALSE(call.Read(answer));
  EXPECT_EQ(call.Finish().error_code(), StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(CallLifetime, ALoadWhoseClientIsGoneWhenItIsParsedDoesNotBegin) {
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("sent");
  (*load.mutable_parameters())["config"].set_string_param("{}");
  (*load.mutable_parameters())["file:1/model.onnx"].set_bytes_param(std::string(2'000'000, 'x'));
  {
    const BusyBulk busy(bulk_);
    RawCall call(channel_, "/inference.GRPCInferenceService/RepositoryModelLoad");
    ASSERT_TRUE(call.Write(load.SerializeAsString()));
    Pause(100);
    call.Cancel();
    EXPECT_EQ(call.Finish().error_code(), StatusCode::CANCELLED);
    Pause(100);
  }
  // It would have come first.
  load.set_model_name("other");
  grpc::ClientContext context;
  inference::RepositoryModelLoadResponse response;
  ASSERT_TRUE(stub_->RepositoryModelLoad(&context, load, &response).ok());
  EXPECT_TRUE(repository_->IsReady("other", ""));
  EXPECT_FALSE(repository_->IsReady("sent", ""));
}

TEST_F(CallLifetime, ACallWhoseFirstMessageDoesNotComeIsGivenUp) {
  GrpcOptions options;
  options.first_message_timeout = std::chrono::milliseconds(200);
  options.open_first_message_timeout = std::chrono::milliseconds(100);
  Serve(options);
  for (const char* method : {kModelInfer, kModelStreamInfer, "/inference.GRPCInferenceService/ServerLive",
                             "/inference.GRPCInferenceService/RepositoryModelLoad", "/grpc.health.v1.Health/Watch",
                             "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}) {
    RawCall call(channel_, method);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("first message")) << method;
  }
  EXPECT_TRUE(Answers());
}

TEST_F(CallLifetime, AStreamIsNotGivenUpOnceAMessageHasCome) {
  GrpcOptions options;
  options.first_message_timeout = std::chrono::milliseconds(200);
  Serve(options);
  RawCall stream(channel_, kModelStreamInfer);
  const std::string request = PairRequest("pair", {1, 2}).SerializeAsString();
  std::string answer;
  ASSERT_TRUE(stream.Write(request));
  ASSERT_TRUE(stream.Read(answer));
  Pause(600);
  ASSERT_TRUE(stream.Write(request));
  ASSERT_TRUE(stream.Read(answer));
}

TEST_F(CallLifetime, ADrainingServerDoesNotWaitForCallsThatHaveSentNothing) {
  RawCall unary(channel_, kModelInfer);
  RawCall load(channel_, "/inference.GRPCInferenceService/RepositoryModelLoad");
  RawCall watch(channel_, "/grpc.health.v1.Health/Watch");
  Pause(50);
  const MonotonicTime begun = RealClock::Instance().Now();
  std::jthread drain([&] { server_->Drain(std::chrono::minutes(1)); });
  for (RawCall* call : {&unary, &load, &watch}) {
    const grpc::Status status = call->Finish();
    EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
  }
  drain.join();
  EXPECT_LT(RealClock::Instance().Now() - begun, std::chrono::seconds(30));
}

TEST_F(CallLifetime, AClientThatVanishesStopsTheRun) {
  {
    RawCall unary(channel_, kModelInfer);
    ASSERT_TRUE(unary.Write(PairRequest("slow", {1, 2}).SerializeAsString()));
    slow_.WaitStarted();
    unary.Cancel();
    (void)unary.Finish();
  }
  stub_.reset();
  channel_.reset();
  slow_.WaitCancelled();
}

TEST_F(CallLifetime, ARequestAfterAnIdleWhileIsAnswered) {
  ASSERT_TRUE(Answers());
  std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
  EXPECT_TRUE(Answers());
}

TEST_F(CallLifetime, SeveralThreadsServeToo) {
  Serve({.threads = 3, .poll_window = std::chrono::nanoseconds(0)});
  std::vector<std::jthread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&] {
      const auto channel = grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), ChannelArguments());
      const auto stub = inference::GRPCInferenceService::NewStub(channel);
      for (int i = 0; i < 50; ++i) {
        grpc::ClientContext context;
        inference::ModelInferResponse response;
        EXPECT_TRUE(stub->ModelInfer(&context, PairRequest("pair", {1, 2}), &response).ok());
      }
    });
  }
}

TEST_F(CallLifetime, LargeMessagesAmongSmallOnesAreAnswered) {
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  std::jthread writer([&] {
    for (std::size_t i = 0; i < 6; ++i) {
      inference::ModelInferRequest request = PairRequest("pair", {1, 2});
      request.set_id(std::string((i % 2) * 3'000'000 + i, 'x'));
      EXPECT_TRUE(stream->Write(request));
    }
    EXPECT_TRUE(stream->WritesDone());
  });
  inference::ModelStreamInferResponse response;
  std::vector<std::size_t> sizes;
  while (stream->Read(&response)) {
    EXPECT_EQ(response.error_message(), "");
    sizes.push_back(response.infer_response().id().size());
  }
  EXPECT_THAT(sizes, UnorderedElementsAre(0, 3'000'001, 2, 3'000'003, 4, 3'000'005));
  EXPECT_TRUE(stream->Finish().ok());
}

}  // namespace
}  // namespace tandem::testing
