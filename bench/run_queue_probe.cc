#include "bench/run_queue_probe.h"

#include <chrono>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "api/base/duration.h"
#include "bench/run_queue.h"
#include "loadgen/http_caller.h"
#include "loadgen/latency_histogram.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;
// A thread that still waits when the answer is there is counted once it has had its core.
constexpr auto kSettle = 2ms;
// After the look, which itself takes a core: what it pushed away is back before the next request comes.
constexpr double kMeanPause = 0.008;

}  // namespace

Result<double> Probe(const RunQueueProbe& probe) {
  TANDEM_ASSIGN(const auto caller, loadgen::HttpCaller::Create({.host = "127.0.0.1", .port = probe.port}));
  TANDEM_ASSIGN(const RunQueueWatch watch, RunQueueWatch::Of(probe.server));
  std::mt19937_64 random(probe.seed);
  std::exponential_distribution<double> pause(1 / kMeanPause);
  loadgen::LatencyHistogram waits;
  std::vector<ThreadWait> before;
  // The first opens the connection and counts for nothing.
  for (int i = 0; i <= probe.requests; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    TANDEM_ASSIGN(const loadgen::HttpAnswer answer, caller->Call(probe.request, kPatience));
    if (answer.status != 200) return Fail(ErrorCode::kInternal, "a probe was answered with {}", answer.status);
    std::this_thread::sleep_for(kSettle);
    TANDEM_ASSIGN(std::vector<ThreadWait> after, watch.Look());
    if (i > 0) waits.Record(LongestDelay(before, after));
    before = std::move(after);
  }
  return Seconds(waits.Percentile(99));
}

}  // namespace tandem::bench
