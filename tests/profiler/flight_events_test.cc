#include "profiler/flight_events.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/profiler/round_trip.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(FlightEvents, OfRequestsComeBackAsTheyWere) {
  const auto arrived = RoundTrip<RequestArrived, RequestJoined>(
      {.at = At(5ms), .request = 7, .model = 3, .waits_for_company = true, .id = ClientId::Of("client-7")});
  EXPECT_EQ(arrived.at, At(5ms));
  EXPECT_EQ(arrived.model, 3u);
  EXPECT_TRUE(arrived.waits_for_company);
  EXPECT_EQ(arrived.id.Text(), "client-7");

  const auto refused = RoundTrip<RequestAdmission, RequestArrived>({.at = At(6ms),
                                                                    .request = 7,
                                                                    .verdict = Admitted::kHopeless,
                                                                    .left = 10ms,
                                                                    .ahead = 14ms,
                                                                    .run = 5ms,
                                                                    .weight = RunWeight::kDoubtful,
                                                                    .waiting = 4,
                                                                    .elements = 2});
  EXPECT_EQ(refused.verdict, Admitted::kHopeless);
  EXPECT_EQ(refused.left, 10ms);
  EXPECT_EQ(refused.ahead, 14ms);
  EXPECT_EQ(refused.run, 5ms);
  EXPECT_EQ(refused.weight, RunWeight::kDoubtful);
  EXPECT_EQ(refused.waiting, 4);
  EXPECT_EQ(refused.elements, 2);
  const auto patient = RoundTrip<RequestAdmission, RequestArrived>({.at = At(6ms), .request = 8});
  EXPECT_FALSE(patient.left || patient.run);

  const auto joined = RoundTrip<RequestJoined, RequestArrived>({.at = At(7ms), .request = 7, .batch = 99});
  EXPECT_EQ(joined.batch, 99u);

  const auto answered = RoundTrip<RequestAnswered, RequestJoined>({.at = At(9ms),
                                                                   .request = 7,
                                                                   .outcome = 2,
                                                                   .slo = 3,
                                                                   .cause = 1,
                                                                   .error = ErrorCode::kInvalidArgument,
                                                                   .deadline = At(50ms),
                                                                   .added = 0ms});
  EXPECT_EQ(answered.outcome, 2);
  EXPECT_EQ(answered.slo, 3);
  EXPECT_EQ(answered.cause, 1);
  EXPECT_EQ(answered.added, 0ms);
  EXPECT_EQ(answered.error, ErrorCode::kInvalidArgument);
  EXPECT_EQ(answered.deadline, At(50ms));
  const auto well = RoundTrip<RequestAnswered, RequestJoined>({.at = At(9ms), .request = 7});
  EXPECT_FALSE(well.error || well.deadline || well.added);
}

TEST(FlightEvents, OfBatchesAndTrainingComeBackAsTheyWere) {
  const auto began = RoundTrip<BatchBegan, BatchEnded>({.at = At(1ms),
                                                        .batch = 4,
                                                        .model = 2,
                                                        .version = 3,
                                                        .elements = 8,
                                                        .requests = 5,
                                                        .worker = 1,
                                                        .expected = 3ms});
  EXPECT_EQ(began.version, 3);
  EXPECT_EQ(began.elements, 8);
  EXPECT_EQ(began.requests, 5);
  EXPECT_EQ(began.worker, 1);
  EXPECT_EQ(began.expected, 3ms);
  EXPECT_EQ((RoundTrip<BatchEnded, BatchBegan>({.at = At(2ms), .batch = 4, .error = ErrorCode::kInternal}).error),
            ErrorCode::kInternal);
  const auto ended = RoundTrip<BatchEnded, BatchBegan>({.at = At(2ms),
                                                        .batch = 4,
                                                        .error = {},
                                                        .model = 2,
                                                        .version = 3,
                                                        .elements = 8,
                                                        .requests = 5,
                                                        .worker = 1,
                                                        .began = At(1ms)});
  EXPECT_EQ(ended.began, At(1ms));
  EXPECT_EQ(ended.model, 2u);
  EXPECT_EQ(ended.requests, 5);
  EXPECT_EQ(ended.worker, 1);

  const auto decision = RoundTrip<TrainingDecision, TrainerHeld>({.at = At(3ms),
                                                                  .hold = 2,
                                                                  .hold_heavy = 3,
                                                                  .learning = true,
                                                                  .requests = 6,
                                                                  .trainers = {.running = 1},
                                                                  .quota_left = 12ms,
                                                                  .until_refill = 40ms});
  EXPECT_EQ(decision.hold, 2);
  EXPECT_EQ(decision.hold_heavy, 3);
  EXPECT_TRUE(decision.learning);
  EXPECT_EQ(decision.requests, 6);
  EXPECT_EQ(decision.quota_left, 12ms);
  EXPECT_EQ(decision.until_refill, 40ms);
  EXPECT_EQ(
      (RoundTrip<TrainerBegan, TrainerEnded>({.at = At(1ms), .trainer = 5, .threads = 2, .trainers = {.running = 3}})
           .threads),
      2);
  const auto gone = RoundTrip<TrainerEnded, TrainerBegan>(
      {.at = At(1ms), .trainer = 5, .trainers = {.running = 3}, .hold = 1, .hold_heavy = 2});
  EXPECT_EQ(gone.trainers, TrainerCounts{.running = 3});
  EXPECT_EQ(gone.hold, 1);
  EXPECT_EQ(gone.hold_heavy, 2);
  EXPECT_EQ((RoundTrip<TrainerHeld, TrainerBegan>({.at = At(1ms), .trainer = 5, .hold = 1}).hold), 1);
  EXPECT_EQ((RoundTrip<TrainerHeld, TrainerBegan>({.at = At(1ms), .trainer = 5, .hold = 1, .job = 7}).job), 7);
  EXPECT_EQ((RoundTrip<TrainerBegan, TrainerEnded>({.at = At(1ms), .trainer = 5, .job = 7}).job), 7);
}

TEST(ClientId, TellsLongIdsApartThatBeginAlike) {
  const std::string one = std::string(100, 'x') + "1";
  const std::string other = std::string(100, 'x') + "2";
  EXPECT_EQ(ClientId::Of(one), ClientId::Of(one));
  EXPECT_NE(ClientId::Of(one), ClientId::Of(other));
  EXPECT_EQ(ClientId::Of(one).Text(), std::string(ClientId::kShown, 'x') + "…");
  EXPECT_NE(ClientId::Of(""), ClientId::Of("x"));
  EXPECT_EQ(ClientId::Of("").Text(), "");
}

TEST(ClientId, IsCutBetweenCharacters) {
  for (std::size_t before = 16; before < 24; ++before) {
    const std::string shown = ClientId::Of(std::string(before, 'x') + "äöü€漢字😀😀").Text();
    ASSERT_TRUE(shown.ends_with("…"));
    // Every beginning of a character is followed by the rest of it.
    for (std::size_t i = 0; i < shown.size();) {
      const auto lead = static_cast<unsigned char>(shown[i]);
      const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      ASSERT_GE(lead < 0x80 ? 0xC0 : lead, 0xC0) << before;
      ASSERT_LE(i + length, shown.size()) << before;
      for (std::size_t k = 1; k < length; ++k)
        ASSERT_EQ(static_cast<unsigned char>(shown[i + k]) & 0xC0, 0x80) << before;
      i += length;
    }
  }
}

}  // namespace
}  // namespace tandem
