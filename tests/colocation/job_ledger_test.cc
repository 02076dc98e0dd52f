#include "colocation/job_ledger.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(JobLedger, CountsTimeAndMemory) {
  JobLedger ledger;
  ledger.Add(SessionId{1});
  ledger.Ran(SessionId{1}, 2us, 1000);
  ledger.Ran(SessionId{1}, 1us, 500);
  EXPECT_EQ(ledger.Had(SessionId{1}), (JobHad{.time = 3us, .byte_time = 2'500'000}));
}

TEST(JobLedger, WhoComesIsOwedNothingForTheTimeBefore) {
  JobLedger ledger;
  ledger.Add(SessionId{1});
  ledger.Add(SessionId{2});
  ledger.Ran(SessionId{1}, 5s, 1);
  ledger.Ran(SessionId{2}, 3s, 10);
  ledger.Add(SessionId{3});
  EXPECT_EQ(ledger.Had(SessionId{3}), (JobHad{.time = 3s, .byte_time = 5e9})) << "the least of each";
  ledger.Add(SessionId{1});
  EXPECT_EQ(ledger.Had(SessionId{1}).time, 5s) << "who is there keeps what it has had";
}

TEST(JobLedger, WhoHasGoneIsForgotten) {
  JobLedger ledger;
  ledger.Add(SessionId{1});
  ledger.Ran(SessionId{1}, 5s, 1);
  ledger.Remove(SessionId{1});
  ledger.Ran(SessionId{1}, 5s, 1);
  EXPECT_EQ(ledger.Had(SessionId{1}), JobHad{});
  ledger.Add(SessionId{2});
  EXPECT_EQ(ledger.Had(SessionId{2}), JobHad{});
}

}  // namespace
}  // namespace tandem
