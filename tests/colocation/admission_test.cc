#include "colocation/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Status Admit(AdmissionSnapshot snapshot) {
  snapshot.model = "m";
  snapshot.now = MonotonicTime(1h);
  return BoundedQueueAdmission().Admit(snapshot);
}

TEST(Admission, LetsInWhatFindsRoom) {
  EXPECT_TRUE(Admit({.queued = 7, .queued_model = 7, .max_queued = 8}));
  EXPECT_TRUE(Admit({.deadline = MonotonicTime(1h + 1ns), .max_queued = 8}));
}

TEST(Admission, NamesTheBoundThatIsReached) {
  const auto device = Admit({.queued = 8, .max_queued = 8});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(device.error().message, HasSubstr("--max-queue is 8"));
  const auto model = Admit({.queued = 2, .queued_model = 2, .max_queued = 8, .max_queued_model = 2});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(model.error().message, HasSubstr("max_queue_size is 2"));
}

TEST(Admission, RefusesWhatIsLateAlready) {
  const auto late = Admit({.deadline = MonotonicTime(1h), .max_queued = 8});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tandem
