#include <functional>
#include <thread>

#include <gmock/gmock.h>

#include "tests/server/grpc/grpc_fixture.h"
#include "tests/server/grpc/raw_call.h"

namespace tandem::testing {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;

constexpr const char* kModelInfer = "/inference.GRPCInferenceService/ModelInfer";
constexpr const char* kModelStreamInfer = "/inference.GRPCInferenceService/ModelStreamInfer";

// Clients that ask and do not read: all but the first 64 KiB of their answers stay with the server.
class UnreadAnswers : public GrpcFixture {
 protected:
  grpc::Status Infer(const inference::ModelInferRequest& request) {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  // An answer has the request's id, and so about its size.
  static inference::ModelInferRequest Large() {
    inference::ModelInferRequest request = PairRequest("pair", {1, 2});
    request.set_id(std::string(4 << 20, 'x'));
    return request;
  }

  std::uint64_t Answered() { return (*repository_->Find("pair", "2"))->statistics().Totals().success.count; }

  // Whose window does not grow.
  [[nodiscard]] std::shared_ptr<grpc::Channel> NarrowChannel() const {
    grpc::ChannelArguments arguments = ChannelArguments();
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
    return grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), arguments);
  }

  static bool Eventually(const std::function<bool()>& happens) {
    const MonotonicTime until = RealClock::Instance().Now() + std::chrono::seconds(30);
    while (!happens()) {
      if (RealClock::Instance().Now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
};

TEST_F(UnreadAnswers, AreBoundedTogetherAndLeaveRoomForSmallOnes) {
  GrpcOptions options;
  options.max_answer_bytes_under_way = 12 << 20;
  Serve(options);
  for (const char* method : {kModelInfer, kModelStreamInfer}) {
    RawCall unread(NarrowChannel(), method);
    ASSERT_TRUE(unread.Write(Large().SerializeAsString()));
    grpc::Status refused;
    EXPECT_TRUE(Eventually([&] { return !(refused = Infer(Large())).ok(); })) << method;
    EXPECT_EQ(refused.error_code(), StatusCode::UNAVAILABLE);
    EXPECT_THAT(refused.error_message(), HasSubstr("answers of"));
    EXPECT_TRUE(Infer(PairRequest("pair", {1, 2})).ok());
    unread.Cancel();
    (void)unread.Finish();
    EXPECT_TRUE(Eventually([&] { return Infer(Large()).ok(); })) << method;
  }
}

TEST_F(UnreadAnswers, AreGivenUpAfterAWhile) {
  GrpcOptions options;
  options.max_answer_bytes_under_way = 12 << 20;
  options.answer_timeout = std::chrono::milliseconds(1'000);
  Serve(options);
  for (const char* method : {kModelInfer, kModelStreamInfer}) {
    RawCall unread(NarrowChannel(), method);
    const auto before = Answered();
    ASSERT_TRUE(unread.Write(Large().SerializeAsString()));
    EXPECT_TRUE(Eventually([&] { return Answered() > before; })) << method;
    bool held = false;
    EXPECT_TRUE(Eventually([&] {
      const bool room = Infer(Large()).ok();
      held |= !room;
      return room;
    })) << method;
    // A machine that was too slow to see it held may have it unsent yet.
    std::string answer;
    if (held) {
      EXPECT_FALSE(unread.Read(answer)) << method;
      EXPECT_EQ(unread.Finish().error_code(), StatusCode::DEADLINE_EXCEEDED) << method;
    }
  }
}

TEST_F(UnreadAnswers, AnAnswerThatNeverFitsIsTooLarge) {
  GrpcOptions options;
  options.max_answer_bytes_under_way = 1 << 20;
  Serve(options);
  const grpc::Status refused = Infer(Large());
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("the answer has 41943"));
}

}  // namespace
}  // namespace tandem::testing
