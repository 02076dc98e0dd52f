#include <thread>

#include <gmock/gmock.h>

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
      const auto channel =
          grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), ChannelArguments());
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
