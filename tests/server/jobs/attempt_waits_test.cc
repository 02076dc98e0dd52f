#include "server/jobs/attempt_waits.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/fakes/jumping_clock.h"

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;

class AttemptWaitsTest : public testing::Test {
 protected:
  // A job that failed now and is shown to be tried again after `wait`.
  JobRecord Waiting(std::chrono::milliseconds wait) {
    JobRecord job;
    job.id = 7;
    job.next_attempt_at =
        std::chrono::duration_cast<std::chrono::milliseconds>(clock_.WallNow().time_since_epoch() + wait).count();
    return job;
  }
  bool IsDue(const JobRecord& job) { return waits_.DueAt(job) <= clock_.Now(); }

  JumpingClock clock_;
  AttemptWaits waits_{clock_, 60s};
};

TEST(BackOff, DoublesUpToTheLongest) {
  EXPECT_EQ(BackOff(1s, 60s, 0), 1s);
  EXPECT_EQ(BackOff(1s, 60s, 1), 2s);
  EXPECT_EQ(BackOff(1s, 60s, 5), 32s);
  EXPECT_EQ(BackOff(1s, 60s, 6), 60s);
  EXPECT_EQ(BackOff(1s, 60s, 1'000'000), 60s);
}

TEST_F(AttemptWaitsTest, AJobThatWaitsForNothingIsDue) {
  JobRecord job;
  job.id = 7;
  EXPECT_EQ(waits_.DueAt(job), MonotonicTime());
  // Also once it has waited, and was told to go on.
  (void)waits_.DueAt(Waiting(10s));
  EXPECT_EQ(waits_.DueAt(job), MonotonicTime());
}

TEST_F(AttemptWaitsTest, ATimeOfDayThatIsSetForwardShortensNoWait) {
  const JobRecord job = Waiting(10s);
  waits_.Begin(job.id, 10s);
  clock_.JumpWall(24h);
  EXPECT_FALSE(IsDue(job));
  clock_.Advance(9999ms);
  EXPECT_FALSE(IsDue(job));
  clock_.Advance(1ms);
  EXPECT_TRUE(IsDue(job));
}

TEST_F(AttemptWaitsTest, ATimeOfDayThatIsSetBackProlongsNoWait) {
  const JobRecord job = Waiting(10s);
  waits_.Begin(job.id, 10s);
  clock_.JumpWall(-24h * 365);
  clock_.Advance(10s);
  EXPECT_TRUE(IsDue(job));
}

TEST_F(AttemptWaitsTest, AnotherServersJobWaitsForItsRest) {
  const JobRecord job = Waiting(10s);
  clock_.Advance(4s);
  EXPECT_EQ(waits_.DueAt(job), clock_.Now() + 6s);
  // From then on the time of day has no say.
  clock_.JumpWall(-1h);
  clock_.Advance(6s);
  EXPECT_TRUE(IsDue(job));
}

TEST_F(AttemptWaitsTest, AnotherServersJobNeverWaitsLongerThanTheLongest) {
  const JobRecord job = Waiting(10s);
  clock_.JumpWall(-24h);
  EXPECT_EQ(waits_.DueAt(job), clock_.Now() + 60s);
}

}  // namespace
}  // namespace tandem::jobs
