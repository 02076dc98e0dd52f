#include "colocation/fair_share.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::MakeServable;

class ShareLedgerTest : public ::testing::Test {
 protected:
  static FlowId Id(const std::shared_ptr<Servable>& servable, std::uint64_t level = 9, bool patient = true) {
    return {.servable = servable.get(), .level = level, .patient = patient};
  }
  static std::vector<Flow> Waiting(const std::vector<FlowId>& ids) {
    std::vector<Flow> flows;
    for (const FlowId& id : ids) flows.push_back({.id = id, .weight = 1, .first = {}});
    return flows;
  }
  // A run of the flow while those wait.
  void Ran(const FlowId& id, const std::vector<FlowId>& waiting, std::chrono::nanoseconds expected,
           std::chrono::nanoseconds took) {
    FlowRun run{.id = id};
    auto flows = Waiting(waiting);
    ledger_.Begin(flows, run, expected);
    flows = Waiting(waiting);
    ledger_.End(flows, run, took);
  }

  const std::shared_ptr<Servable> a_ = MakeServable("a", {});
  const std::shared_ptr<Servable> b_ = MakeServable("b", {});
  ShareLedger ledger_;
};

TEST_F(ShareLedgerTest, NobodyIsFurthestBehindAlone) {
  Ran(Id(a_), {Id(a_), Id(b_)}, 4s, 4s);
  EXPECT_EQ(ledger_.Behind(Id(b_)), 2s);
  EXPECT_EQ(ledger_.FurthestBehind(Waiting({Id(b_)})), nullptr);
  const auto both = Waiting({Id(a_), Id(b_)});
  EXPECT_EQ(ledger_.FurthestBehind(both), &both[1]);
}

TEST_F(ShareLedgerTest, LevelsAndKindsOfOneModelAreCountedApart) {
  Ran(Id(a_, 9), {Id(a_, 9), Id(b_, 9)}, 1s, 1s);
  EXPECT_EQ(ledger_.Behind(Id(b_, 9)), 500ms);
  EXPECT_EQ(ledger_.Behind(Id(b_, 1)), 0s);
  EXPECT_EQ(ledger_.Behind(Id(b_, 9, false)), 0s);
  Ran(Id(b_, 1), {Id(b_, 1), Id(a_, 1)}, 2s, 2s);
  EXPECT_EQ(ledger_.Behind(Id(b_, 9)), 500ms) << "what it had on the other level does not count";
  ledger_.Forget(Id(b_, 1));
  EXPECT_EQ(ledger_.Behind(Id(b_, 9)), 500ms);
}

TEST_F(ShareLedgerTest, ARunCountsWhenItBeginsAndForWhatItTookWhenItEnds) {
  Ran(Id(a_), {Id(a_), Id(b_)}, 0s, 1s);
  ASSERT_EQ(ledger_.Behind(Id(b_)), 500ms);
  FlowRun run{.id = Id(b_)};
  auto flows = Waiting({Id(a_), Id(b_)});
  ledger_.Begin(flows, run, 400ms);
  EXPECT_EQ(ledger_.Behind(Id(b_)), 300ms);
  flows = Waiting({Id(a_), Id(b_)});
  ledger_.End(flows, run, 100ms);
  EXPECT_EQ(ledger_.Behind(Id(b_)), 450ms);
  EXPECT_EQ(ledger_.Behind(Id(a_)), 50ms);
  // More was expected than it was behind by: what was not counted is not given back.
  Ran(Id(b_), {Id(a_), Id(b_)}, 2s, 600ms);
  EXPECT_EQ(ledger_.Behind(Id(b_)), 150ms);
}

TEST_F(ShareLedgerTest, AModelWithBothKindsHasOneShare) {
  // Of its flow that runs nothing waits, but of the other.
  Ran(Id(a_, 9, false), {Id(a_, 9, true), Id(b_)}, 1s, 1s);
  EXPECT_EQ(ledger_.Behind(Id(b_)), 500ms);
  EXPECT_EQ(ledger_.Behind(Id(a_, 9, true)), 250ms);
}

TEST_F(ShareLedgerTest, TheDebtOfWhoDoesNotWaitFadesWhileOthersRun) {
  Ran(Id(a_), {Id(a_), Id(b_)}, 1s, 1s);
  ledger_.Fade(1s, [](const FlowId&) { return true; });
  EXPECT_EQ(ledger_.Behind(Id(b_)), 500ms);
  const auto nobody = [](const FlowId&) { return false; };
  ledger_.Fade(1s, nobody);
  EXPECT_LT(ledger_.Behind(Id(b_)), 500ms);
  EXPECT_GT(ledger_.Behind(Id(b_)), 400ms);
  EXPECT_EQ(ledger_.most(), ledger_.Behind(Id(b_)));
  ledger_.Fade(10s, nobody);
  EXPECT_EQ(ledger_.most(), 0s);
}

}  // namespace
}  // namespace tandem
