#include "loadgen/metrics_watch.h"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "api/base/format.h"
#include "tests/loadgen/scripted_server.h"

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;

MetricsSource At(const ScriptedServer& server) {
  return {
      .target = {.scheme = Scheme::kHttp, .host = "127.0.0.1", .port = server.port()}, .tls = {}, .token = "secret"};
}

// Waits for what must come, however slow the machine is.
template <typename Condition>
void Until(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

TEST(ReadServerMetrics, AsksWithTheTokenAndReadsTheAnswer) {
  std::string asked;
  {
    ScriptedServer server([&](int, const std::string& request) {
      asked = request;
      return ScriptedReply::Ok("nv_inference_request_success{model=\"a\"} 3\n");
    });
    const auto metrics = ReadServerMetrics(At(server), 60s);
    ASSERT_TRUE(metrics) << metrics.error().message;
    EXPECT_EQ(metrics->models.at("a").requests, 3);
  }
  EXPECT_NE(asked.find("GET /metrics HTTP/1.1"), std::string::npos);
  EXPECT_NE(asked.find("Authorization: Bearer secret"), std::string::npos);
}

TEST(ReadServerMetrics, AServerWithoutThemIsUnavailable) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"};
  });
  const auto metrics = ReadServerMetrics(At(server), 60s);
  ASSERT_FALSE(metrics);
  EXPECT_EQ(metrics.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(metrics.error().message.find("404"), std::string::npos);
}

TEST(TrainingWatch, SeesHowTrainingGoesOn) {
  std::atomic<int> readings{0};
  ScriptedServer server([&](int number, const std::string&) {
    ++readings;
    if (number == 1) return ScriptedReply{.bytes = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"};
    return ScriptedReply::Ok(
        Format("tandem_training_iterations_total{{job=\"7\"}} {}\n"
               "tandem_training_held_seconds_total{{job=\"7\",reason=\"slack\"}} {}\n",
               number * 10, number));
  });
  TrainingWatch watch(At(server), 1ms);
  Until([&] { return watch.HeldLately().has_value() && readings.load() > 5; });
  EXPECT_GT(*watch.HeldLately(), 0);
  const TrainingSeries series = watch.Finish();
  EXPECT_EQ(series.Jobs()[0].job, "7");
  EXPECT_GE(series.Jobs()[0].iterations, 40);
  // The one that failed is left out.
  EXPECT_EQ(series.times().size() + 1, static_cast<std::size_t>(readings.load()) - 1);
  // One that is kept, and one to see whether the server is there.
  EXPECT_LE(server.connections(), 2);
}

TEST(TrainingWatch, AServerThatIsNotThereHasNoTraining) {
  TrainingWatch watch({.target = {.scheme = Scheme::kHttp, .host = "127.0.0.1", .port = 1}, .tls = {}, .token = {}},
                      1ms);
  EXPECT_TRUE(watch.Finish().empty());
}

}  // namespace
}  // namespace tandem::loadgen
