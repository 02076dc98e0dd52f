#include "server/trace/trace_sources.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/reader.h>
#include <json/value.h>
#include <json/writer.h>

#include "colocation/training_notes.h"
#include "server/trace/op_tracks.h"

namespace tandem::trace {
namespace {

using namespace std::chrono_literals;
using ::testing::UnorderedElementsAre;

MonotonicTime At(std::chrono::nanoseconds time) {
  return MonotonicTime(1h + time);
}

class TraceTest : public ::testing::Test {
 protected:
  void Batch(std::uint64_t batch, std::uint16_t worker, std::chrono::nanoseconds from,
             std::optional<std::chrono::nanoseconds> to) {
    recorder_.Write(BatchBegan{.at = At(from),
                               .batch = batch,
                               .model = recorder_.names().NumberOf("m\"odel"),
                               .version = 1,
                               .elements = 2,
                               .requests = 1,
                               .worker = worker,
                               .expected = 3ms});
    if (to) recorder_.Write(BatchEnded{.at = At(*to), .batch = batch, .error = {}});
  }
  void Request(std::uint64_t number, std::chrono::nanoseconds from, std::uint64_t batch, std::chrono::nanoseconds run,
               std::optional<std::chrono::nanoseconds> to) {
    recorder_.Write(RequestArrived{.at = At(from),
                                   .request = number,
                                   .model = recorder_.names().NumberOf("m\"odel"),
                                   .id = ClientId::Of("an id")});
    if (batch != 0) recorder_.Write(RequestJoined{.at = At(run), .request = number, .batch = batch});
    if (to) recorder_.Write(RequestAnswered{.at = At(*to), .request = number});
  }

  // The events of a whole trace, which is checked to be one.
  std::vector<Json::Value> Events(std::chrono::nanoseconds from, std::chrono::nanoseconds to,
                                  const std::vector<TraceSource>& more = {}) {
    const std::string text = WriteTrace(CopyOf(recorder_), {.from = At(from), .to = At(to)}, more);
    Json::Value json;
    std::string errors;
    const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
    EXPECT_TRUE(reader->parse(text.data(), text.data() + text.size(), &json, &errors)) << errors << text;
    EXPECT_EQ(json["displayTimeUnit"], "ms");
    about_ = json["otherData"];
    std::vector<Json::Value> events(json["traceEvents"].begin(), json["traceEvents"].end());
    Check(events, from, to);
    return events;
  }

  static double Micros(std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::micro>(At(time).time_since_epoch()).count();
  }

  void Check(const std::vector<Json::Value>& events, std::chrono::nanoseconds from, std::chrono::nanoseconds to) {
    std::map<std::string, std::vector<std::string>> open;      // By id: what has begun.
    std::map<std::pair<int, Json::Int64>, double> busy_until;  // Of each track.
    std::set<std::pair<int, Json::Int64>> named;
    for (const Json::Value& event : events) {
      const std::string phase = event["ph"].asString();
      ASSERT_TRUE(event["ts"].isNumeric() && event["pid"].isInt() && event["tid"].isIntegral()) << event;
      const std::pair track(event["pid"].asInt(), event["tid"].asInt64());
      if (phase == "M") {
        if (event["name"] == "thread_name") named.insert(track);
        continue;
      }
      EXPECT_GE(event["ts"].asDouble(), Micros(from));
      EXPECT_LE(event["ts"].asDouble(), Micros(to));
      if (phase == "X") {
        ASSERT_TRUE(event["dur"].isNumeric()) << event;
        EXPECT_GE(event["dur"].asDouble(), 0);
        EXPECT_LE(event["ts"].asDouble() + event["dur"].asDouble(), Micros(to) + 0.001);
        EXPECT_GE(event["ts"].asDouble() + 0.001, busy_until[track]) << "slices of one track overlap: " << event;
        busy_until[track] = event["ts"].asDouble() + event["dur"].asDouble();
        EXPECT_TRUE(named.contains(track)) << event;
      } else if (phase == "b") {
        open[event["id"].asString()].push_back(event["name"].asString());
      } else if (phase == "e") {
        auto& begun = open[event["id"].asString()];
        ASSERT_FALSE(begun.empty()) << event;
        EXPECT_EQ(begun.back(), event["name"].asString());
        begun.pop_back();
      } else {
        ADD_FAILURE() << event;
      }
    }
    for (const auto& [id, begun] : open) EXPECT_TRUE(begun.empty()) << id << " does not end";
  }

  static std::vector<std::string> Names(const std::vector<Json::Value>& events, const char* phase, int group) {
    std::vector<std::string> names;
    for (const Json::Value& event : events) {
      if (event["ph"] == phase && event["pid"].asInt() == group) names.push_back(event["name"].asString());
    }
    return names;
  }

  // Of the tracks of a group.
  static std::vector<std::string> Tracks(const std::vector<Json::Value>& events, int group) {
    std::vector<std::string> names;
    for (const Json::Value& event : events) {
      if (event["name"] == "thread_name" && event["pid"].asInt() == group) {
        names.push_back(event["args"]["name"].asString());
      }
    }
    return names;
  }

  FlightRecorder recorder_{1024};
  Json::Value about_;
};

TEST_F(TraceTest, OfNothingIsStillATrace) {
  const auto events = Events(0s, 5s);
  EXPECT_TRUE(Names(events, "X", kWorkerTracks).empty());
  EXPECT_EQ(about_["asked_seconds"], "5.000");
  EXPECT_EQ(about_["covered_seconds"], "5.000");
}

TEST_F(TraceTest, ShowsRequestsTheirRunsAndTraining) {
  const TrainingNotes notes(&recorder_);
  notes.Began(At(1ms), 0, 2, {.trainers = {.running = 1}, .hold = {}, .hold_heavy = {}});
  notes.Decided(At(3ms), HoldReason::kQuota, {}, {.requests = 1, .trainers = {.running = 1}, .quotas = {}});
  notes.Held(At(3ms), 0, HoldReason::kQuota);
  Batch(1, 0, 2ms, 9ms);
  Request(1, 1ms, 1, 2ms, 10ms);
  Request(2, 3ms, 0, 0ms, 4ms);  // Refused.
  const auto events = Events(0ms, 20ms);
  EXPECT_THAT(Names(events, "b", kRequestTracks), UnorderedElementsAre("m\"odel", "waits", "runs", "m\"odel", "waits"));
  EXPECT_THAT(Names(events, "X", kWorkerTracks), UnorderedElementsAre("m\"odel x2"));
  EXPECT_THAT(Names(events, "X", kTrainingTracks), UnorderedElementsAre("runs", "held: quota", "runs", "held: quota"));
}

TEST_F(TraceTest, ATrainerIsCalledByItsJob) {
  const TrainingNotes notes(&recorder_);
  notes.Began(At(1ms), 0, 2, {.trainers = {.running = 1}, .hold = {}, .hold_heavy = {}}, 7);
  notes.Began(At(2ms), 1, 2, {.trainers = {.running = 2}, .hold = {}, .hold_heavy = {}});
  notes.Held(At(3ms), 2, HoldReason::kQuota, 9);  // Whose beginning was overwritten.
  EXPECT_THAT(Tracks(Events(0ms, 20ms), kTrainingTracks),
              UnorderedElementsAre("decisions", "job 7", "trainer 1", "job 9"));
}

TEST_F(TraceTest, ATrainerThatIsPausedOrWaitsDoesNotRun) {
  const TrainingNotes notes(&recorder_);
  notes.Began(At(1ms), 0, 2, {.trainers = {.running = 1}, .hold = {}, .hold_heavy = {}}, 7);
  notes.Stands(At(3ms), 0, HoldReason::kTurn, {.trainers = {.waiting = 1}, .hold = {}, .hold_heavy = {}}, 7);
  notes.Stands(At(6ms), 0, HoldReason::kPaused, {.trainers = {.paused = 1}, .hold = {}, .hold_heavy = {}}, 7);
  // A decision, and the trainer.
  EXPECT_THAT(Names(Events(7ms, 20ms), "X", kTrainingTracks), UnorderedElementsAre("held: paused", "held: paused"));
  EXPECT_THAT(Names(Events(4ms, 5ms), "X", kTrainingTracks), UnorderedElementsAre("runs", "held: turn"));
}

TEST_F(TraceTest, ShowsWhoHadTheTurnInWhichLane) {
  recorder_.Write(TurnBegan{.at = At(1ms), .job = 7, .lane = 3});
  recorder_.Write(TurnBegan{.at = At(2ms), .job = 9, .lane = 4});
  recorder_.Write(TurnEnded{.at = At(5ms), .job = 7, .lane = 3, .began = At(1ms)});
  recorder_.Write(TurnBegan{.at = At(5ms), .job = 8, .lane = 3});
  recorder_.Write(TurnEnded{.at = At(7ms), .job = 8, .lane = 3, .began = At(5ms)});
  recorder_.Write(TurnBegan{.at = At(7ms), .job = 7, .lane = 3});
  // Of this one only the end is kept.
  recorder_.Write(TurnEnded{.at = At(4ms), .job = 6, .lane = 0, .began = At(1ms)});
  const auto events = Events(3ms, 20ms);
  EXPECT_THAT(Tracks(events, kLaneTracks), UnorderedElementsAre("lane 0", "lane 3", "lane 4"));
  using Shown = std::tuple<std::string, Json::Int64, double, double>;
  std::vector<Shown> shown;
  for (const Json::Value& event : events) {
    if (event["ph"] != "X" || event["pid"].asInt() != kLaneTracks) continue;
    shown.emplace_back(event["name"].asString(), event["args"]["lane"].asInt64(), event["ts"].asDouble() - Micros(0ms),
                       event["dur"].asDouble());
  }
  EXPECT_THAT(shown, UnorderedElementsAre(Shown("job 6", 0, 3000, 1000), Shown("job 7", 3, 3000, 2000),
                                          Shown("job 8", 3, 5000, 2000), Shown("job 7", 3, 7000, 13000),
                                          Shown("job 9", 4, 3000, 17000)));
}

TEST_F(TraceTest, WithoutTurnsThereAreNoLanes) {
  recorder_.Write(TurnEnded{.at = At(4ms), .job = 6, .lane = 0, .began = At(1ms)});
  for (const Json::Value& event : Events(5ms, 20ms)) EXPECT_NE(event["pid"].asInt(), kLaneTracks) << event;
}

TEST_F(TraceTest, TurnsWhoseEndsWereLostDoNotOverlap) {
  recorder_.Write(TurnBegan{.at = At(1ms), .job = 7, .lane = 3});
  recorder_.Write(TurnBegan{.at = At(5ms), .job = 8, .lane = 3});
  recorder_.Write(TurnBegan{.at = At(6ms), .job = 8, .lane = 4});
  EXPECT_THAT(Names(Events(0ms, 20ms), "X", kLaneTracks), UnorderedElementsAre("job 7", "job 8", "job 8"));
}

TEST_F(TraceTest, ShowsOperatorsOfTrainers) {
  RecentOps ops{
      .job = 7,
      .ops = {{.info = {.kind = "Conv", .name = "n\"1"}, .heavy = true}, {.info = {.kind = "update", .name = ""}}},
      .runs = {}};
  ops.runs = {{.op = 0, .began = At(-5ms), .took = 1ms},  // Before the window.
              {.op = 0, .began = At(-1ms), .took = 3ms},  // Cut.
              {.op = 1, .began = At(2ms), .took = 1ms},
              {.op = 0, .began = At(2500us), .took = 1ms},  // Beside another, which cannot be.
              {.op = 9, .began = At(4ms), .took = 1ms},     // There is no such operator.
              {.op = 0, .began = At(6ms), .took = 1h}};
  const auto events = Events(0ms, 20ms, {DrawOps({ops})});
  EXPECT_THAT(Names(events, "X", kTrainingTracks), ::testing::ElementsAre("Conv n\"1", "update", "Conv n\"1"));
  EXPECT_THAT(Tracks(events, kTrainingTracks), UnorderedElementsAre("decisions", "job 7: operators"));
  EXPECT_EQ(events.back()["args"]["kind"], "Conv");
  EXPECT_EQ(events.back()["args"]["node"], "n\"1");
  EXPECT_EQ(events.back()["args"]["class"], "heavy");
}

TEST_F(TraceTest, OfTooManyOperatorsTheNewestAreShown) {
  std::vector<RecentOps> trainers(8);
  for (RecentOps& trainer : trainers) {
    trainer.job = 1 + (&trainer - trainers.data());
    trainer.ops = {{.info = {.kind = "Conv", .name = ""}}};
    for (int i = 0; i < 4096; ++i) trainer.runs.push_back({.op = 0, .began = At(i * 1ms), .took = 900us});
  }
  const auto events = Events(0s, 5s, {DrawOps(trainers)});
  EXPECT_EQ(Names(events, "X", kTrainingTracks).size(), kMostOfAKind);
  EXPECT_DOUBLE_EQ(events.back()["ts"].asDouble(), Micros(4095ms));
}

TEST_F(TraceTest, CutsWhatReachesBeyondTheWindow) {
  Batch(1, 0, 0ms, 50ms);
  Batch(2, 0, 50ms, std::nullopt);  // It still runs.
  Batch(3, 1, 1ms, 5ms);            // Before the window.
  Request(1, 0ms, 1, 1ms, 60ms);
  Request(2, 30ms, 0, 0ms, std::nullopt);
  Request(3, 1ms, 3, 2ms, 6ms);
  const auto events = Events(20ms, 55ms);
  EXPECT_EQ(Names(events, "X", kWorkerTracks).size(), 2u);
  // The first waited before the window, and runs in it; the second still waits.
  EXPECT_THAT(Names(events, "b", kRequestTracks), UnorderedElementsAre("m\"odel", "runs", "m\"odel", "waits"));
}

TEST_F(TraceTest, RunsOfSeveralFrontEndsDoNotOverlap) {
  Batch(1, kFrontEnd, 0ms, 5ms);
  Batch(2, kFrontEnd, 1ms, 4ms);
  Batch(3, kFrontEnd, 6ms, 7ms);
  EXPECT_EQ(Names(Events(0ms, 10ms), "X", kWorkerTracks).size(), 3u);
}

TEST_F(TraceTest, SaysHowMuchOfTheTimeIsKnown) {
  for (int i = 0; i < 3000; ++i) Request(static_cast<std::uint64_t>(i) + 1, i * 1ms, 0, 0ms, i * 1ms + 500us);
  const auto events = Events(0s, 3s);
  EXPECT_EQ(about_["asked_seconds"], "3.000");
  EXPECT_LT(std::stod(about_["covered_seconds"].asString()), 0.6);
  EXPECT_GT(std::stod(about_["covered_seconds"].asString()), 0.5);
  EXPECT_EQ(Names(events, "b", kRequestTracks).size(), 2u * 512);
}

TEST_F(TraceTest, ARequestThatWasLongOnItsWayDoesNotMakeItReachBack) {
  for (int i = 0; i < 2000; ++i) Request(static_cast<std::uint64_t>(i) + 1, i * 1ms, 0, 0ms, i * 1ms + 500us);
  recorder_.Write(RequestArrived{.at = At(-1h), .request = 5000, .model = 0, .id = {}});
  Events(0s, 2s);
  EXPECT_LT(std::stod(about_["covered_seconds"].asString()), 0.6);
}

TEST_F(TraceTest, ReachesBackAsFarAsWhatIsKnownOfTraining) {
  const TrainingNotes notes(&recorder_);
  static_assert(FlightRecorder::kTrainingRecords == 8192);
  for (int i = 0; i < 9000; ++i) notes.Held(At(i * 1ms), 0, std::nullopt);
  Events(0s, 9s);
  EXPECT_EQ(about_["covered_seconds"], "8.192");
}

TEST_F(TraceTest, ReachesBackAsFarAsWhatIsKnownOfTurns) {
  static_assert(FlightRecorder::kTurnRecords == 4096);
  for (int i = 0; i < 5000; ++i) recorder_.Write(TurnBegan{.at = At(i * 1ms), .job = 7, .lane = 3});
  Events(0s, 5s);
  EXPECT_EQ(about_["covered_seconds"], "4.096");
}

TEST(WriteTrace, SaysWhatWasTooMuch) {
  FlightRecorder recorder(65'536);
  for (int i = 0; i < 20'010; ++i) {
    const auto number = static_cast<std::uint64_t>(i) + 1;
    recorder.Write(RequestArrived{.at = At(i * 1ms), .request = number, .model = 0, .id = {}});
    recorder.Write(RequestAnswered{.at = At((i + 1) * 1ms), .request = number});
  }
  const std::string text = WriteTrace(CopyOf(recorder), {.from = At(0s), .to = At(20'010ms)});
  EXPECT_THAT(text, ::testing::HasSubstr(R"("left_out_requests":"10","left_out_runs":"0")"));
  // The last that is left out was answered then.
  EXPECT_THAT(text, ::testing::HasSubstr(R"("covered_seconds":"20.000")"));
}

TEST_F(TraceTest, ARunIsDrawnWhenOnlyItsEndIsKnown) {
  recorder_.Write(BatchEnded{.at = At(9ms),
                             .batch = 1,
                             .error = {},
                             .model = recorder_.names().NumberOf("m"),
                             .version = 1,
                             .elements = 1,
                             .requests = 1,
                             .worker = 0,
                             .began = At(2ms)});
  EXPECT_THAT(Names(Events(0ms, 10ms), "X", kWorkerTracks), UnorderedElementsAre("m"));
}

TEST_F(TraceTest, OtherSourcesAddTracksOfTheirOwn) {
  const TraceSource operators = [](TraceWriter& out) {
    out.NameTrack({.group = kTrainingTracks, .line = 7}, "operators");
    out.Slice({.group = kTrainingTracks, .line = 7}, "Conv", At(1ms), At(2ms), {{"class", "\"heavy\""}});
  };
  const std::string text = WriteTrace(CopyOf(recorder_), {.from = At(0ms), .to = At(5ms)}, {operators});
  EXPECT_THAT(text, ::testing::HasSubstr(R"("name":"Conv","ph":"X")"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("args":{"class":"heavy"})"));
}

}  // namespace
}  // namespace tandem::trace
