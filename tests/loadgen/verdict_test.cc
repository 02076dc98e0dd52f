#include "loadgen/verdict.h"

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/json.h>

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr LatencyTarget kTarget{.bound = 100ms};

VerdictKind KindOf(std::uint64_t offered, std::uint64_t over) {
  return Judge(kTarget, offered, over).value().kind;
}

TEST(MinimumCount, GivesTheReferenceCountsOfEarlyStopping) {
  EXPECT_EQ(MinimumCount(99, 0), 459U);
  EXPECT_EQ(MinimumCount(99, 1), 662U);
  EXPECT_EQ(MinimumCount(99, 10), 2010U);
  EXPECT_EQ(MinimumCount(99, 100), 12571U);
}

TEST(MinimumCount, AgreesWithTheExactSumFromAHandfulOfRequestsToABillion) {
  // By summing with 60 decimal digits.
  EXPECT_EQ(MinimumCount(50, 0), 7U);
  EXPECT_EQ(MinimumCount(50, 1000), 2108U);
  EXPECT_EQ(MinimumCount(50, 10'000'000), 20'010'408U);
  EXPECT_EQ(MinimumCount(99, 100'000), 10'073'443U);
  EXPECT_EQ(MinimumCount(99, 10'000'000), 1'000'732'215U);
  EXPECT_EQ(MinimumCount(99.9, 1000), 1'076'032U);
  EXPECT_EQ(MinimumCount(99.99, 0), 46'050U);
  EXPECT_EQ(MinimumCount(99.99, 5), 131'081U);
  EXPECT_EQ(MinimumCount(99.99, 100'000), 1'007'380'929U);
  EXPECT_EQ(MinimumCount(99.99, 10'000'000), 100'073'586'610U);
}

TEST(MinimumCount, GrowsWithEachMissByAtLeastWhatTheShareAllows) {
  for (const double percentile : {50.0, 90.0, 99.0, 99.9}) {
    std::uint64_t before = MinimumCount(percentile, 0).value();
    for (std::uint64_t over = 1; over < 300; ++over) {
      const std::uint64_t count = MinimumCount(percentile, over).value();
      EXPECT_GE(static_cast<double>(count - before), std::floor(100 / (100 - percentile))) << percentile << " " << over;
      before = count;
    }
  }
}

TEST(MinimumCount, GrowsWithTheConfidence) {
  EXPECT_EQ(MinimumCount(99, 0, 0.95), 299U);
  EXPECT_LT(MinimumCount(99, 10, 0.9).value(), MinimumCount(99, 10, 0.99).value());
  EXPECT_LT(MinimumCount(99, 10, 0.99).value(), MinimumCount(99, 10, 0.999999).value());
}

TEST(MinimumCount, RefusesWhatCannotBeAnswered) {
  for (const double percentile : {0.0, 100.0, -1.0, 101.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto count = MinimumCount(percentile, 0);
    ASSERT_FALSE(count) << percentile;
    EXPECT_EQ(count.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(count.error().message, HasSubstr("percentile"));
  }
  for (const double confidence : {0.0, 1.0, -0.5, 99.0, std::nan("")}) {
    const auto count = MinimumCount(99, 0, confidence);
    ASSERT_FALSE(count) << confidence;
    EXPECT_THAT(count.error().message, HasSubstr("confidence"));
  }
  EXPECT_FALSE(MinimumCount(99, std::numeric_limits<std::uint64_t>::max()));
  EXPECT_FALSE(MinimumCount(99.99999999999999, 0));
}

TEST(Judge, PassesFromTheMinimumCountOn) {
  EXPECT_EQ(KindOf(458, 0), VerdictKind::kInconclusive);
  EXPECT_EQ(KindOf(459, 0), VerdictKind::kPass);
  EXPECT_EQ(KindOf(2009, 10), VerdictKind::kInconclusive);
  EXPECT_EQ(KindOf(2010, 10), VerdictKind::kPass);
  EXPECT_EQ(KindOf(1'000'732'214, 10'000'000), VerdictKind::kInconclusive);
  EXPECT_EQ(KindOf(1'000'732'215, 10'000'000), VerdictKind::kPass);
}

TEST(Judge, FailsOnlyWhenSoManyMissesAreNoBadLuck) {
  // Of 100 requests with one in a hundred missing, 4 or more miss in 1.8 % of runs and 5 or more in 0.3 %.
  EXPECT_EQ(KindOf(100, 4), VerdictKind::kInconclusive);
  EXPECT_EQ(KindOf(100, 5), VerdictKind::kFail);
  EXPECT_EQ(KindOf(10'000, 100), VerdictKind::kInconclusive);
  EXPECT_EQ(KindOf(10'000, 130), VerdictKind::kFail);
  EXPECT_EQ(KindOf(1'000'000'000, 10'010'000), VerdictKind::kFail);
  EXPECT_EQ(KindOf(3, 3), VerdictKind::kFail);
}

TEST(Judge, SaysNothingOfARunWithoutRequests) {
  const auto verdict = Judge(kTarget, 0, 0);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->kind, VerdictKind::kInconclusive);
  EXPECT_EQ(verdict->more_without_a_miss, 459U);
}

TEST(Judge, SoManyMoreWithoutAMissMakeItAPassAndOneFewerDoesNot) {
  for (const auto& [offered, over] : {std::pair{100, 0}, {500, 1}, {1000, 9}, {5000, 45}, {1'000'000, 9950}}) {
    const auto verdict = Judge(kTarget, static_cast<std::uint64_t>(offered), static_cast<std::uint64_t>(over)).value();
    ASSERT_EQ(verdict.kind, VerdictKind::kInconclusive) << offered << " " << over;
    EXPECT_EQ(KindOf(verdict.offered + verdict.more_without_a_miss, verdict.over), VerdictKind::kPass);
    EXPECT_EQ(KindOf(verdict.offered + verdict.more_without_a_miss - 1, verdict.over), VerdictKind::kInconclusive);
  }
}

TEST(Judge, ForeseesHowManyItTakesAtTheSameShareOfMisses) {
  for (const auto& [offered, over] : {std::pair{400, 1}, {1000, 5}, {1000, 8}, {5000, 45}, {1'000'000, 9950}}) {
    const auto verdict = Judge(kTarget, static_cast<std::uint64_t>(offered), static_cast<std::uint64_t>(over)).value();
    ASSERT_TRUE(verdict.total_at_this_share) << offered << " " << over;
    const auto misses_of = [&](double total) { return static_cast<std::uint64_t>(std::ceil(total * over / offered)); };
    const auto total = static_cast<double>(*verdict.total_at_this_share);
    EXPECT_GE(total, static_cast<double>(verdict.offered + verdict.more_without_a_miss));
    EXPECT_EQ(KindOf(static_cast<std::uint64_t>(total), misses_of(total)), VerdictKind::kPass) << offered;
    const double fewer = total * 0.7;
    EXPECT_NE(KindOf(static_cast<std::uint64_t>(fewer), misses_of(fewer)), VerdictKind::kPass) << offered;
  }
  EXPECT_EQ(Judge(kTarget, 10'000, 100)->total_at_this_share, std::nullopt);
  EXPECT_EQ(Judge(kTarget, 10'000, 101)->total_at_this_share, std::nullopt);
  // A pass that would take a hundred million requests is not promised.
  EXPECT_EQ(Judge(kTarget, 1'000'000, 9'999)->total_at_this_share, std::nullopt);
}

// The promise of the confidence itself: a server at the limit must not pass, nor fail, more than once in a hundred
// runs.
TEST(Judge, IsSeldomWrongAboutAServerThatMissesExactlyTheAllowedShare) {
  std::mt19937_64 random(5);
  int passes = 0;
  int fails = 0;
  constexpr int kRuns = 5000;
  for (int run = 0; run < kRuns; ++run) {
    std::uint64_t over = 0;
    for (int i = 0; i < 2000; ++i) over += random() % 100 == 0 ? 1 : 0;
    const VerdictKind kind = KindOf(2000, over);
    passes += kind == VerdictKind::kPass ? 1 : 0;
    fails += kind == VerdictKind::kFail ? 1 : 0;
  }
  // Three standard deviations above one in a hundred.
  EXPECT_LE(passes, 71);
  EXPECT_LE(fails, 71);
}

TEST(Judge, RefusesCountsThatMakeNoSense) {
  EXPECT_FALSE(Judge(kTarget, 10, 11));
  EXPECT_FALSE(Judge(kTarget, std::numeric_limits<std::uint64_t>::max(), 0));
  EXPECT_FALSE(Judge({.percentile = 100}, 10, 0));
  EXPECT_FALSE(Judge({.confidence = 1}, 10, 0));
}

TEST(VerdictText, SaysWhatWasFoundAndHowSureThatIs) {
  EXPECT_EQ(VerdictText(Judge(kTarget, 3000, 12).value()),
            "PASS: 12 of 3,000 over 100 ms; p99 within the bound with 99 % confidence");
  EXPECT_EQ(VerdictText(Judge({.bound = 1500us, .percentile = 99.9, .confidence = 0.999}, 1'000'000, 2000).value()),
            "FAIL: 2,000 of 1,000,000 over 1.5 ms; p99.9 beyond the bound with 99.9 % confidence");
  EXPECT_EQ(VerdictText(Judge(kTarget, 458, 0).value()),
            "INCONCLUSIVE: 0 of 458 over 100 ms; 1 more request without a miss is needed");
  EXPECT_EQ(
      VerdictText(Judge(kTarget, 1000, 5).value()),
      "INCONCLUSIVE: 5 of 1,000 over 100 ms; 307 more requests without a miss are needed, or about 2,300 in all at "
      "this share of misses");
  EXPECT_EQ(VerdictText(Judge(kTarget, 1000, 10).value()),
            "INCONCLUSIVE: 10 of 1,000 over 100 ms; 1,010 more requests without a miss are needed; at this share of "
            "misses more requests would hardly help");
}

TEST(VerdictJson, HasEveryFigureUnderAStableName) {
  const auto parse = [](const std::string& text) {
    Json::Value value;
    std::string problem;
    const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
    EXPECT_TRUE(reader->parse(text.data(), text.data() + text.size(), &value, &problem)) << problem << text;
    return value;
  };
  const Json::Value pass = parse(VerdictJson(Judge(kTarget, 3000, 12).value()));
  EXPECT_EQ(pass["result"].asString(), "pass");
  EXPECT_EQ(pass["percentile"].asDouble(), 99);
  EXPECT_EQ(pass["confidence"].asDouble(), 0.99);
  EXPECT_EQ(pass["bound_ms"].asDouble(), 100);
  EXPECT_EQ(pass["offered"].asInt(), 3000);
  EXPECT_EQ(pass["over"].asInt(), 12);
  EXPECT_TRUE(pass["more_without_a_miss"].isNull());
  EXPECT_TRUE(pass["total_at_this_share"].isNull());
  const Json::Value open = parse(VerdictJson(Judge(kTarget, 100, 0).value()));
  EXPECT_EQ(open["result"].asString(), "inconclusive");
  EXPECT_EQ(open["more_without_a_miss"].asInt(), 359);
  EXPECT_EQ(open["total_at_this_share"].asInt(), 459);
}

}  // namespace
}  // namespace tandem::loadgen
