#include "loadgen/run.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "loadgen/infer_request_bytes.h"
#include "loadgen/trace_file.h"
#include "tests/loadgen/scripted_server.h"

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// A server on a fake clock: one request after another, each in `service`; between stall_from and stall_to (since the
// first request) none is answered.
class SimulatedServer final : public Transport {
 public:
  explicit SimulatedServer(FakeClock& clock) : clock_(clock), start_(clock.Now()) {}

  nanoseconds service = 1ms;
  nanoseconds stall_from = 0ms, stall_to = 0ms;
  int status = 200;
  std::function<std::string(std::size_t)> body = [](std::size_t) { return ""; };  // Of the answer to a request.
  TransportOutcome outcome = TransportOutcome::kAnswered;

  void Send(std::size_t request, MonotonicTime scheduled) override {
    const MonotonicTime now = clock_.Now();
    MonotonicTime done = std::max(now, free_at_) + service;
    if (done >= start_ + stall_from && done < start_ + stall_to) done = start_ + stall_to;
    free_at_ = done;
    waiting_.push_back({.request = request,
                        .scheduled = scheduled,
                        .submitted = now,
                        .sent = now,
                        .first_byte = done,
                        .done = done,
                        .outcome = outcome,
                        .status = status,
                        .body = body(request)});
    sent_.push_back(request);
    most_at_once_ = std::max(most_at_once_, waiting_.size());
  }

  void Poll(MonotonicTime until, std::vector<RequestRecord>& finished) override {
    if (!waiting_.empty()) until = std::min(until, waiting_.front().done);
    if (until > clock_.Now()) clock_.Advance(until - clock_.Now());
    while (!waiting_.empty() && waiting_.front().done <= clock_.Now()) {
      finished.push_back(waiting_.front());
      waiting_.pop_front();
    }
  }

  [[nodiscard]] std::size_t outstanding() const override { return waiting_.size(); }
  [[nodiscard]] std::size_t most_at_once() const { return most_at_once_; }
  [[nodiscard]] const std::vector<std::size_t>& sent() const { return sent_; }

 private:
  FakeClock& clock_;
  const MonotonicTime start_;
  MonotonicTime free_at_;
  std::deque<RequestRecord> waiting_;
  std::size_t most_at_once_ = 0;
  std::vector<std::size_t> sent_;
};

LoadSpec OneModel(ArrivalSpec arrivals, nanoseconds duration, std::optional<nanoseconds> slo = std::nullopt) {
  LoadSpec spec;
  spec.models.push_back({.model = "m", .request = {}, .arrivals = std::move(arrivals), .slo = slo});
  spec.duration = duration;
  spec.request_timeout = 1h;  // On a busy machine nothing may time out.
  return spec;
}

TEST(DriveLoad, AStallOfOneSecondMakesEveryRequestScheduledInItLate) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 10us;
  server.stall_from = 1s;
  server.stall_to = 2s;
  const auto report = DriveLoad(OneModel(ArrivalSpec::Constant(100), 4s, 5ms), server, clock);
  ASSERT_TRUE(report);
  const ModelReport& model = report->models.front();
  EXPECT_EQ(model.scheduled, 400U);
  EXPECT_EQ(model.counts.total(), 400U);
  EXPECT_EQ(model.counts.late, 100U);
  EXPECT_EQ(model.counts.ok, 300U);
  // The request scheduled just as the stall began waited for all of it, the others each 10 ms less.
  EXPECT_NEAR(model.latency.Max().count(), 1e9, 2e6);
  EXPECT_NEAR(model.latency.Percentile(87.5).count(), 5e8, 11e6);
  EXPECT_NEAR(model.latency.Percentile(50).count(), 10e3, 20);
  EXPECT_DOUBLE_EQ(model.offered_rate, 100);
  EXPECT_DOUBLE_EQ(model.goodput, 75);
  EXPECT_DOUBLE_EQ(model.attainment, 0.75);
  EXPECT_FALSE(report->partial);
}

TEST(DriveLoad, AnOverloadedServerDoesNotSlowTheArrivals) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 20ms;
  const auto report = DriveLoad(OneModel(ArrivalSpec::Constant(100), 10s), server, clock);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->models[0].scheduled, 1000U);
  // Half of what was offered was served by the end, so that the last request waited ten seconds.
  EXPECT_NEAR(report->models[0].latency.Max().count(), 10e9, 0.1e9);
  EXPECT_GE(server.most_at_once(), 490U);
  EXPECT_DOUBLE_EQ(report->models[0].offered_rate, 100);
  EXPECT_NEAR(report->models[0].achieved_rate, 50, 0.2);
  EXPECT_EQ(report->health.send_lag.Max(), 0ns);
}

TEST(DriveLoad, AClosedLoopNeverHasMoreRequestsThanUsersAndCountsFromTheSend) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 2ms;
  const auto report = DriveLoad(OneModel(ArrivalSpec::Closed(4), 2s), server, clock);
  ASSERT_TRUE(report);
  EXPECT_EQ(server.most_at_once(), 4U);
  // Four users share a server that takes 2 ms each.
  EXPECT_NEAR(report->models[0].latency.Percentile(50).count(), 8e6, 8e3);
  EXPECT_NEAR(report->models[0].achieved_rate, 500, 2.5);
}

TEST(DriveLoad, DoesNotCountTheWarmUp) {
  FakeClock clock;
  SimulatedServer server(clock);
  LoadSpec spec = OneModel(ArrivalSpec::Constant(100), 1s, 5ms);
  spec.warmup = 2s;
  server.stall_to = 1900ms;  // All within the warm-up.
  int records = 0;
  const auto report = DriveLoad(spec, server, clock, {.on_request = [&](const JudgedRequest&) { ++records; }});
  ASSERT_TRUE(report);
  EXPECT_EQ(records, 300);
  EXPECT_EQ(report->models[0].scheduled, 100U);
  EXPECT_EQ(report->models[0].counts.total(), 100U);
}

TEST(DriveLoad, ReplaysATraceModelByModelAndStaysToTheEndOfTheRun) {
  FakeClock clock;
  SimulatedServer server(clock);
  const auto trace = ParseTrace("time_s,model,size\n0,a,1\n0.5,b,1\n0.5,a,1\n1.25,b,1\n7,a,1\n", "t.csv");
  ASSERT_TRUE(trace);
  LoadSpec spec;
  for (const auto& stream : trace->streams) {
    spec.models.push_back(
        {.model = stream->model, .request = {}, .arrivals = ArrivalSpec::Replay(stream), .slo = std::nullopt});
  }
  spec.duration = 5s;
  const MonotonicTime start = clock.Now();
  std::vector<std::pair<std::size_t, nanoseconds>> sent;
  const auto report = DriveLoad(spec, server, clock, {.on_request = [&](const JudgedRequest& request) {
                                  sent.emplace_back(request.model, request.record.scheduled - start);
                                }});
  ASSERT_TRUE(report);
  std::ranges::sort(sent);
  // What is due after the end of the run is not sent.
  EXPECT_EQ(sent, (std::vector<std::pair<std::size_t, nanoseconds>>{{0, 0ms}, {0, 500ms}, {1, 500ms}, {1, 1250ms}}));
  EXPECT_EQ(report->models[0].scheduled, 2U);
  EXPECT_EQ(report->models[1].scheduled, 2U);
  EXPECT_EQ(report->measured, 5s);
  EXPECT_FALSE(report->partial);
}

TEST(DriveLoad, ARampWithoutATimeOfItsOwnGoesOverTheWarmUpAndTheMeasuredTime) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 1us;
  LoadSpec spec = OneModel(ArrivalSpec::Ramp({.from = 0, .to = 1000, .over_s = {}}), 10s);
  spec.warmup = 10s;
  const auto report = DriveLoad(spec, server, clock);
  ASSERT_TRUE(report);
  // Three quarters of 10,000.
  EXPECT_NEAR(static_cast<double>(report->models[0].scheduled), 7500, 5 * std::sqrt(7500));
}

TEST(DriveLoad, TellsRejectedFromFailed) {
  const auto counts_of = [](int status, TransportOutcome outcome) {
    FakeClock clock;
    SimulatedServer server(clock);
    server.status = status;
    server.outcome = outcome;
    return DriveLoad(OneModel(ArrivalSpec::Constant(10), 1s), server, clock)->models.front();
  };
  EXPECT_EQ(counts_of(503, TransportOutcome::kAnswered).counts.rejected, 10U);
  EXPECT_EQ(counts_of(429, TransportOutcome::kAnswered).counts.rejected, 10U);
  EXPECT_EQ(counts_of(400, TransportOutcome::kAnswered).counts.failed, 10U);
  EXPECT_EQ(counts_of(400, TransportOutcome::kAnswered).failures.at("HTTP 400"), 10U);
  EXPECT_EQ(counts_of(0, TransportOutcome::kTimedOut).failures.at("timed out"), 10U);
  EXPECT_EQ(counts_of(500, TransportOutcome::kAnswered).latency.count(), 0U);
}

TEST(DriveLoad, AClosedLoopDoesNotSpinAgainstAServerThatRefusesConnections) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 0ms;
  server.outcome = TransportOutcome::kConnectFailed;
  const auto report = DriveLoad(OneModel(ArrivalSpec::Closed(1), 1s), server, clock);
  ASSERT_TRUE(report);
  EXPECT_LE(report->models[0].counts.failed, 101U);
}

TEST(DriveLoad, ReportsEachModelOfAMix) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 10us;
  LoadSpec spec = OneModel(ArrivalSpec::Constant(10), 10s);
  spec.models.push_back({.model = "n", .request = {}, .arrivals = ArrivalSpec::Poisson(100), .slo = 1s});
  const auto report = DriveLoad(spec, server, clock);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->models[0].counts.ok, 100U);
  EXPECT_NEAR(static_cast<double>(report->models[1].counts.ok), 1000, 130);
}

TEST(DriveLoad, SendsTheRequestOfEachSizeThatATraceNames) {
  FakeClock clock;
  SimulatedServer server(clock);
  const auto trace = ParseTrace("time_s,model,size\n0,a,4\n0.1,b,\n0.2,a,1\n0.3,a,4\n", "t.csv");
  ASSERT_TRUE(trace);
  LoadSpec spec;
  spec.duration = 1s;
  spec.models.push_back({.model = "a", .request = {}, .arrivals = ArrivalSpec::Replay(trace->Find("a")), .slo = {}});
  spec.models.push_back({.model = "b", .request = {}, .arrivals = ArrivalSpec::Replay(trace->Find("b")), .slo = {}});
  spec.models[0].sizes = {{.batch = 1, .request = HttpRequest{.head = "one", .parts = {}}},
                          {.batch = 4, .request = HttpRequest{.head = "four", .parts = {}}}};
  spec.models[1].request = HttpRequest{.head = "b", .parts = {}};
  const auto requests = RequestsOf(spec);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(std::get<HttpRequest>(*requests[1]).head, "four");
  EXPECT_EQ(std::get<HttpRequest>(*requests[2]).head, "b");
  std::vector<std::pair<std::size_t, std::uint32_t>> seen;
  const auto report =
      DriveLoad(spec, server, clock,
                {.on_request = [&](const JudgedRequest& request) { seen.emplace_back(request.model, request.batch); }});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(server.sent(), (std::vector<std::size_t>{1, 2, 0, 1}));
  EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, std::uint32_t>>{{0, 4}, {1, 1}, {0, 1}, {0, 4}}));

  spec.models[0].sizes.pop_back();
  const auto refused = DriveLoad(spec, server, clock);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("batch of 4"), std::string::npos);
}

TEST(DriveLoad, AWrongAnswerHasFailedHoweverFastItCame) {
  FakeClock clock;
  SimulatedServer server(clock);
  int answers = 0;
  server.body = [&](std::size_t) {
    const bool right = ++answers % 10 != 0;
    return std::string(R"({"outputs":[{"name":"y","datatype":"INT32","shape":[1],"data":[)") + (right ? "1" : "2") +
           "]}]}";
  };
  LoadSpec spec = OneModel(ArrivalSpec::Constant(100), 1s, 500ms);
  spec.warmup = 1s;
  spec.models[0].expect.emplace();
  std::vector<std::string> reasons;
  const auto report = DriveLoad(spec, server, clock, {.on_request = [&](const JudgedRequest& request) {
                                  if (!request.reason.empty()) reasons.emplace_back(request.reason);
                                }});
  ASSERT_TRUE(report);
  const ModelReport& model = report->models[0];
  EXPECT_EQ(model.counts.ok, 90U);
  EXPECT_EQ(model.counts.failed, 10U);
  EXPECT_EQ(model.failures.at("wrong answer"), 10U);
  // Those of the warm-up as well: they are as wrong.
  EXPECT_EQ(model.checked, 200U);
  EXPECT_EQ(model.wrong, 20U);
  EXPECT_EQ(model.first_wrong, "output 'y': element 0 is 2, expected 1");
  EXPECT_EQ(model.latency.count(), 90U);
  EXPECT_EQ(reasons, std::vector<std::string>(20, "wrong answer"));
  EXPECT_EQ(report->health.check.count(), 200U);
}

TEST(DriveLoad, ComparesOnlyAsManyAnswersAsAskedFor) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.body = [](std::size_t) { return "never right"; };
  LoadSpec spec = OneModel(ArrivalSpec::Constant(100), 1s);
  spec.models[0].expect = Expectation{.outputs = {}, .tolerance = 0, .every = 50};
  const auto report = DriveLoad(spec, server, clock);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->models[0].checked, 2U);
  EXPECT_EQ(report->models[0].wrong, 2U);
  EXPECT_EQ(report->models[0].counts.ok, 98U);
}

TEST(DriveLoad, AnAnswerThatIsNoneIsNotCompared) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.status = 503;
  LoadSpec spec = OneModel(ArrivalSpec::Constant(100), 1s);
  spec.models[0].expect.emplace();
  const auto report = DriveLoad(spec, server, clock);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->models[0].counts.rejected, 100U);
  EXPECT_EQ(report->models[0].checked, 0U);
}

TEST(DriveLoad, EndsInGoodOrderWhenItIsEnough) {
  FakeClock clock;
  SimulatedServer server(clock);
  server.service = 30ms;  // Slower than the arrivals, so that some are under way when it is enough.
  std::atomic<bool> enough{false};
  LoadHooks hooks;
  hooks.enough = &enough;
  hooks.on_progress = [&](const LoadProgress& progress) { enough = progress.elapsed >= 2s; };
  const auto report = DriveLoad(OneModel(ArrivalSpec::Constant(50), 100s), server, clock, hooks);
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->partial);
  EXPECT_EQ(report->measured, 2s);
  EXPECT_EQ(report->models[0].scheduled, 100U);
  EXPECT_EQ(report->models[0].counts.ok, 100U);
  EXPECT_DOUBLE_EQ(report->models[0].attainment, 1);
  EXPECT_DOUBLE_EQ(report->models[0].offered_rate, 50);
}

TEST(DriveLoad, StopsWhenToldAndSaysThatTheReportIsPartial) {
  FakeClock clock;
  SimulatedServer server(clock);
  std::atomic<bool> stop{false};
  LoadHooks hooks;
  hooks.stop = &stop;
  hooks.on_progress = [&](const LoadProgress& progress) { stop = progress.elapsed >= 3s; };
  const auto report = DriveLoad(OneModel(ArrivalSpec::Constant(100), 60s), server, clock, hooks);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->partial);
  EXPECT_NEAR(static_cast<double>(report->models[0].scheduled), 300, 10);
  EXPECT_NEAR(report->models[0].offered_rate, 100, 4);
}

TEST(DriveLoad, ReportsProgressOncePerInterval) {
  FakeClock clock;
  SimulatedServer server(clock);
  std::vector<LoadProgress> seen;
  LoadHooks hooks;
  hooks.on_progress = [&](const LoadProgress& progress) { seen.push_back(progress); };
  LoadSpec spec = OneModel(ArrivalSpec::Constant(100), 5s);
  spec.progress_interval = 500ms;
  ASSERT_TRUE(DriveLoad(spec, server, clock, hooks));
  ASSERT_NEAR(static_cast<double>(seen.size()), 10, 1);
  EXPECT_NEAR(seen[3].models[0].rate, 100, 3);
  EXPECT_EQ(seen[3].planned, 5s);
  EXPECT_NEAR(seen[3].models[0].p50.count(), 1e6, 1e3);
}

TEST(DriveLoad, RefusesASpecThatMakesNoSense) {
  FakeClock clock;
  SimulatedServer server(clock);
  EXPECT_FALSE(DriveLoad(LoadSpec{}, server, clock));
  EXPECT_FALSE(DriveLoad(OneModel(ArrivalSpec::Constant(0), 1s), server, clock));
  EXPECT_FALSE(DriveLoad(OneModel(ArrivalSpec::Constant(1), 0s), server, clock));
  EXPECT_FALSE(DriveLoad(OneModel(ArrivalSpec::Constant(1), 1s, -1ms), server, clock));
}

TEST(RunLoad, CountsTheStallOfARealServerFromTheScheduledTime) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); });
  LoadSpec spec = OneModel(ArrivalSpec::Constant(200), 1s, 50ms);
  spec.port = server.port();
  spec.models[0].request = BuildGet("127.0.0.1", server.port(), "/");
  spec.progress_interval = 50ms;
  LoadHooks hooks;
  hooks.on_progress = [&](const LoadProgress& progress) {
    if (progress.elapsed >= 200ms && progress.elapsed < 700ms) {
      server.Hold();
    } else {
      server.Release();
    }
  };
  const auto report = RunLoad(spec, hooks);
  ASSERT_TRUE(report) << report.error().message;
  const ModelReport& model = report->models.front();
  EXPECT_EQ(model.scheduled, 200U);
  EXPECT_EQ(model.counts.total(), 200U);
  EXPECT_EQ(model.counts.failed, 0U);
  // About 400 ms of held requests at 200 per second; a slow machine can only make more of them late.
  EXPECT_GE(model.counts.late, 60U);
  EXPECT_GE(model.latency.Max(), 300ms);
}

TEST(RunLoad, RunsAClosedLoopAgainstARealServer) {
  ScriptedServer server([](int number, const std::string&) {
    if (number % 10 == 9) return ScriptedReply{.bytes = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"};
    return ScriptedReply::Ok();
  });
  LoadSpec spec = OneModel(ArrivalSpec::Closed(3), 200ms);
  spec.port = server.port();
  spec.models[0].request = BuildGet("127.0.0.1", server.port(), "/");
  spec.connections = 1;  // Raised to one for each user.
  const auto report = RunLoad(spec);
  ASSERT_TRUE(report) << report.error().message;
  const OutcomeCounts& counts = report->models[0].counts;
  EXPECT_GT(counts.ok, 0U);
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_EQ(counts.rejected, static_cast<std::uint64_t>(server.requests()) / 10);
  EXPECT_EQ(counts.total(), static_cast<std::uint64_t>(server.requests()));
  // One for each user, and one to see whether the server is there.
  EXPECT_EQ(server.connections(), 4);
  EXPECT_EQ(report->health.queued, 0U);
}

TEST(RunLoad, ComparesAnswersOfARealServer) {
  ScriptedServer server([](int number, const std::string&) {
    return ScriptedReply::Ok(std::string(R"({"outputs":[{"name":"y","datatype":"INT32","shape":[1],"data":[)") +
                             (number == 5 ? "2" : "1") + "]}]}");
  });
  LoadSpec spec = OneModel(ArrivalSpec::Closed(1), 200ms);
  spec.port = server.port();
  HttpRequest request = BuildGet("127.0.0.1", server.port(), "/");
  request.keep_body = true;
  spec.models[0].request = std::move(request);
  spec.models[0].expect.emplace();
  const auto report = RunLoad(spec);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->models[0].counts.ok, 0U);
  EXPECT_LE(report->models[0].wrong, 1U);
  EXPECT_EQ(report->models[0].wrong == 1, server.requests() > 5);
}

TEST(RunLoad, RefusesRequestsOfAnotherKindThanItsTarget) {
  LoadSpec spec = OneModel(ArrivalSpec::Closed(1), 1s);
  spec.models[0].request = GrpcInferRequest{};
  const auto report = RunLoad(spec);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("http"), std::string::npos);
}

TEST(RunLoad, AnUnreachableServerIsAnError) {
  LoadSpec spec = OneModel(ArrivalSpec::Closed(1), 1s);
  spec.host = "127.0.0.1";
  spec.port = 1;
  const auto report = RunLoad(spec);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tandem::loadgen
