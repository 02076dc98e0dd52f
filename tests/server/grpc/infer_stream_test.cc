#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "tests/server/grpc/busy_bulk.h"
#include "tests/server/grpc/grpc_fixture.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferStreams : public GrpcFixture {
 protected:
  auto Open() { return stub_->ModelStreamInfer(&context_); }

  static inference::ModelInferRequest WithId(inference::ModelInferRequest request, const std::string& id) {
    request.set_id(id);
    return request;
  }

  grpc::ClientContext context_;
  inference::ModelStreamInferResponse response_;
};

TEST_F(InferStreams, EveryRequestGetsOneAnswerAndHalfCloseWaitsForThem) {
  const auto stream = Open();
  std::jthread writer([&] {
    for (int i = 0; i < 500; ++i) {
      EXPECT_TRUE(stream->Write(WithId(PairRequest("pair", {1, static_cast<float>(i)}), std::to_string(i))));
    }
    EXPECT_TRUE(stream->WritesDone());
  });
  std::set<std::string> ids;
  while (stream->Read(&response_)) {
    EXPECT_EQ(response_.error_message(), "");
    const std::string& id = response_.infer_response().id();
    EXPECT_THAT(Floats(response_.infer_response().raw_output_contents(0)), ElementsAre(2, 2 * std::stof(id)));
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_EQ(ids.size(), 500U);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferStreams, AnErrorIsAnAnswerWithTheIdAndTheStreamGoesOn) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(WithId(PairRequest("nope", {1, 2}), "first")));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_THAT(response_.error_message(), HasSubstr("nope"));
  EXPECT_EQ(response_.infer_response().id(), "first");
  inference::ModelInferRequest bad = WithId(PairRequest("pair", {1, 2}), "second");
  bad.set_raw_input_contents(0, "x");
  ASSERT_TRUE(stream->Write(bad));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_NE(response_.error_message(), "");
  EXPECT_EQ(response_.infer_response().id(), "second");
  ASSERT_TRUE(stream->Write(PairRequest("pair", {1, 2})));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_EQ(response_.error_message(), "");
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response_));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferStreams, MarksTheFinalResponseWhenAskedTo) {
  const auto stream = Open();
  inference::ModelInferRequest request = PairRequest("pair", {1, 2});
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_FALSE(response_.infer_response().parameters().contains("triton_final_response"));
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_EQ(response_.error_message(), "");
  EXPECT_TRUE(response_.infer_response().parameters().at("triton_final_response").bool_param());
}

TEST_F(InferStreams, MarksAnErrorAsTheFinalResponseToo) {
  const auto stream = Open();
  inference::ModelInferRequest request = PairRequest("pair", {1, 2});
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  request.set_raw_input_contents(0, "x");
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_NE(response_.error_message(), "");
  EXPECT_TRUE(response_.infer_response().parameters().contains("triton_final_response"));
}

TEST_F(InferStreams, AMessageOfMuchStructureIsRefusedAndTheStreamGoesOn) {
  const auto stream = Open();
  inference::ModelInferRequest request;
  for (int i = 0; i < 2'000; ++i) request.add_outputs();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_THAT(response_.error_message(), HasSubstr("'outputs'"));
  ASSERT_TRUE(stream->Write(PairRequest("pair", {1, 2})));
  ASSERT_TRUE(stream->Read(&response_));
  EXPECT_EQ(response_.error_message(), "");
}

TEST_F(InferStreams, ReadsNoFurtherWhileTheClientDoesNotTakeItsAnswers) {
  GrpcOptions options;
  options.max_unsent_bytes_per_stream = 1 << 20;
  Serve(options);
  constexpr int kRequests = 50;
  const auto stream = Open();
  std::jthread writer([&] {
    // An answer has the request's id, and so about its size.
    const std::string id(1'000'000, 'x');
    for (int i = 0; i < kRequests; ++i) EXPECT_TRUE(stream->Write(WithId(PairRequest("pair", {1, 2}), id)));
    EXPECT_TRUE(stream->WritesDone());
  });
  const auto answered = [&] { return (*repository_->Find("pair", "2"))->statistics().Totals().success.count; };
  Pause(200);
  for (std::uint64_t before = 0; before != answered(); Pause(200)) before = answered();
  EXPECT_LT(answered(), 25U);
  int answers = 0;
  while (stream->Read(&response_)) ++answers;
  EXPECT_EQ(answers, kRequests);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferStreams, ReadsNoFurtherThanTheLimitWhileNothingIsAnswered) {
  GrpcOptions options;
  options.max_outstanding_per_stream = 3;
  Serve(options);
  const auto stream = Open();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(stream->Write(PairRequest("slow", {1, 2})));
  slow_.WaitStarted();
  // One runs; of the others only two are let in however long one waits. A third would be seen here.
  while (dispatcher_->queued() < 2) std::this_thread::yield();
  Pause(50);
  EXPECT_EQ(dispatcher_->queued(), 2U);
  slow_.Open();
  stream->WritesDone();
  int answers = 0;
  while (stream->Read(&response_)) ++answers;
  EXPECT_EQ(answers, 10);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferStreams, AClientThatCancelsStopsTheRun) {
  const auto stream = Open();
  ASSERT_TRUE(stream->Write(PairRequest("slow", {1, 2})));
  slow_.WaitStarted();
  context_.TryCancel();
  slow_.WaitCancelled();
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::CANCELLED);
}

TEST_F(InferStreams, ADrainingServerAnswersWhatItHasAndEndsAnIdleStream) {
  const auto idle = Open();
  ASSERT_TRUE(idle->Write(PairRequest("pair", {1, 2})));
  ASSERT_TRUE(idle->Read(&response_));
  grpc::ClientContext busy_context;
  const auto busy = stub_->ModelStreamInfer(&busy_context);
  ASSERT_TRUE(busy->Write(PairRequest("slow", {1, 2})));
  slow_.WaitStarted();
  std::jthread drain([&] { server_->Drain(std::chrono::minutes(1)); });
  EXPECT_FALSE(idle->Read(&response_));
  EXPECT_EQ(idle->Finish().error_code(), StatusCode::UNAVAILABLE);
  slow_.Open();
  ASSERT_TRUE(busy->Read(&response_));
  EXPECT_EQ(response_.error_message(), "");
  EXPECT_FALSE(busy->Read(&response_));
  EXPECT_EQ(busy->Finish().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace tandem::testing
