#include "server/grpc/grpc_status.h"

#include <gtest/gtest.h>

namespace tandem::grpc_front {
namespace {

TEST(GrpcStatus, EveryErrorHasTheCodeThatClientsExpect) {
  EXPECT_EQ(ToGrpcCode(ErrorCode::kInvalidArgument), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kNotFound), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kConflict), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kTooLarge), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kUnauthenticated), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kUnavailable), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kCancelled), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kDeadlineExceeded), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kUnsupported), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ToGrpcCode(ErrorCode::kInternal), grpc::StatusCode::INTERNAL);
}

TEST(GrpcStatus, SuccessIsOk) {
  EXPECT_TRUE(ToGrpcStatus(Status()).ok());
}

TEST(GrpcStatus, TheMessageReachesTheClientUnchanged) {
  const grpc::Status status = ToGrpcStatus(Error{ErrorCode::kNotFound, "model 'x' is not loaded"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "model 'x' is not loaded");
}

TEST(GrpcStatus, AMessageTooLongForATrailerIsCutBetweenCharacters) {
  std::string text = "x";
  while (text.size() < 10'000) text += "é";
  const std::string cut = ToGrpcStatus(Error{ErrorCode::kInternal, text}).error_message();
  EXPECT_LT(cut.size(), 2100U);
  ASSERT_TRUE(cut.ends_with("é…"));
}

}  // namespace
}  // namespace tandem::grpc_front
