#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include "tests/server/grpc/grpc_fixture.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferCalls : public GrpcFixture {
 protected:
  grpc::Status Infer(const inference::ModelInferRequest& request) {
    grpc::ClientContext context;
    response_.Clear();
    return stub_->ModelInfer(&context, request, &response_);
  }

  // Sends bytes as they are.
  grpc::Status SendRaw(const std::string& method, const std::string& bytes) {
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    std::promise<grpc::Status> done;
    grpc::GenericStub(channel_).UnaryCall(&context, "/inference.GRPCInferenceService/" + method, {}, &request,
                                          &response, [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  inference::ModelInferResponse response_;
};

TEST_F(InferCalls, AnswersWithRawContentsAndTheId) {
  const grpc::Status status = Infer(PairRequest("pair", {1, 2, 3, 4}));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response_.model_name(), "pair");
  EXPECT_EQ(response_.model_version(), "2");
  EXPECT_EQ(response_.id(), "id-1");
  ASSERT_EQ(response_.outputs_size(), 1);
  EXPECT_EQ(response_.outputs(0).name(), "y");
  EXPECT_EQ(response_.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response_.outputs(0).shape(), ElementsAre(2, 2));
  ASSERT_EQ(response_.raw_output_contents_size(), 1);
  EXPECT_THAT(Floats(response_.raw_output_contents(0)), ElementsAre(2, 4, 6, 8));
}

TEST_F(InferCalls, TakesTypedContentsToo) {
  inference::ModelInferRequest request = PairRequest("pair", {1, 2});
  request.clear_raw_input_contents();
  for (const float value : {5.0F, 6.0F}) request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(value);
  ASSERT_TRUE(Infer(request).ok());
  EXPECT_THAT(Floats(response_.raw_output_contents(0)), ElementsAre(10, 12));
}

TEST_F(InferCalls, RefusesContentsOfTheWrongSizeAndAnswersTheNext) {
  inference::ModelInferRequest request = PairRequest("pair", {1, 2});
  request.set_raw_input_contents(0, "abc");
  grpc::Status status = Infer(request);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("'x'"));
  request = PairRequest("pair", {1, 2});
  request.add_raw_input_contents("surplus");
  EXPECT_EQ(Infer(request).error_code(), StatusCode::INVALID_ARGUMENT);
  request = PairRequest("pair", {1, 2});
  request.mutable_inputs(0)->set_shape(0, std::int64_t{1} << 62);
  EXPECT_EQ(Infer(request).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(InferCalls, NamesTheModelThatIsNotThere) {
  const grpc::Status status = Infer(PairRequest("nope", {1, 2}));
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("nope"));
}

TEST_F(InferCalls, BytesThatAreNoMessageAreTheClientsMistake) {
  for (const char* method : {"ModelInfer", "ModelConfig", "RepositoryModelLoad", "ServerLive"}) {
    const grpc::Status status = SendRaw(method, std::string("\xff\xff\xff\xff\x01", 5));
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(), HasSubstr("inference.")) << method;
  }
  // A string that is not UTF-8.
  EXPECT_EQ(SendRaw("ModelInfer", std::string("\x0a\x02\xff\xfe", 4)).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(InferCalls, ACallWithoutAnyMessageIsTheClientsMistake) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call =
      grpc::GenericStub(channel_).PrepareCall(&context, "/inference.GRPCInferenceService/ModelInfer", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->WritesDone(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
}

TEST_F(InferCalls, AClientThatCancelsStopsTheRun) {
  grpc::ClientContext context;
  std::jthread caller([&] {
    inference::ModelInferResponse response;
    EXPECT_EQ(stub_->ModelInfer(&context, PairRequest("slow", {1, 2}), &response).error_code(), StatusCode::CANCELLED);
  });
  slow_.WaitStarted();
  context.TryCancel();
  slow_.WaitCancelled();
}

TEST_F(InferCalls, ARequestWhoseClientGoesWhileItWaitsIsNeverRun) {
  grpc::ClientContext running;
  grpc::ClientContext waiting;
  std::jthread first([&] {
    inference::ModelInferResponse response;
    EXPECT_TRUE(stub_->ModelInfer(&running, PairRequest("slow", {1, 2}), &response).ok());
  });
  slow_.WaitStarted();
  {
    std::jthread second([&] {
      inference::ModelInferResponse response;
      EXPECT_EQ(stub_->ModelInfer(&waiting, PairRequest("pair", {1, 2}), &response).error_code(),
                StatusCode::CANCELLED);
    });
    while (dispatcher_->queued() == 0) std::this_thread::yield();
    waiting.TryCancel();
  }
  while (dispatcher_->queued() > 0) std::this_thread::yield();
  slow_.Open();
  first.join();
  EXPECT_EQ((*repository_->Find("pair", "2"))->statistics().Totals().execution_count, 0U);
}

TEST_F(InferCalls, TheCallsDeadlineEndsTheRun) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, PairRequest("slow", {1, 2}), &response).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  if (slow_.started() > 0) slow_.WaitCancelled();
}

TEST_F(InferCalls, ADeadlineInTheFarFutureIsNone) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::time_point::max());
  EXPECT_TRUE(stub_->ModelInfer(&context, PairRequest("pair", {1, 2}), &response_).ok());
}

TEST_F(InferCalls, TheSloHeaderIsTheRequestsDeadline) {
  grpc::ClientContext blocking;
  std::jthread first([&] {
    inference::ModelInferResponse response;
    (void)stub_->ModelInfer(&blocking, PairRequest("slow", {1, 2}), &response);
  });
  slow_.WaitStarted();
  auto late = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    context.AddMetadata("x-slo-ms", "1");
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, PairRequest("pair", {1, 2}), &response).error_code();
  });
  // On a busy machine it may be late before it could even wait.
  const auto answered = [&] { return late.wait_for(std::chrono::seconds(0)) == std::future_status::ready; };
  while (dispatcher_->queued() == 0 && !answered()) std::this_thread::yield();
  const MonotonicTime waiting = RealClock::Instance().Now();
  while (RealClock::Instance().Now() < waiting + std::chrono::milliseconds(2)) std::this_thread::yield();
  slow_.Open();
  EXPECT_EQ(late.get(), StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(InferCalls, ASloHeaderThatIsNoNumberIsRefused) {
  grpc::ClientContext context;
  context.AddMetadata("x-slo-ms", "soon");
  const grpc::Status status = stub_->ModelInfer(&context, PairRequest("pair", {1, 2}), &response_);
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("soon"));
}

TEST_F(InferCalls, CompressedRequestsAreUnderstoodAndAnsweredAlike) {
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    inference::ModelInferRequest request = PairRequest("pair", std::vector<float>(64, 1.5F));
    request.set_id(std::string(10'000, 'i'));
    const grpc::Status status = stub_->ModelInfer(&context, request, &response_);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response_.id(), request.id());
    EXPECT_EQ(Floats(response_.raw_output_contents(0)), std::vector<float>(64, 3.0F));
  }
}

TEST_F(InferCalls, ManyAtOnceAllGetTheirOwnAnswer) {
  std::vector<std::jthread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 100; ++i) {
        grpc::ClientContext context;
        inference::ModelInferResponse response;
        const auto value = static_cast<float>(client * 1000 + i);
        const grpc::Status status = stub_->ModelInfer(&context, PairRequest("pair", {value, -value}), &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        EXPECT_THAT(Floats(response.raw_output_contents(0)), ElementsAre(2 * value, -2 * value));
      }
    });
  }
}

}  // namespace
}  // namespace tandem::testing
