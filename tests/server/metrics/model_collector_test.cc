#include "server/metrics/model_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ModelCollector, ShowsWhatIsServedUnderTritonsNames) {
  std::vector<std::shared_ptr<Servable>> served = {testing::MakeServable("m", {})};
  ModelCollector collector([&] { return served; }, [](const Servable&) { return std::size_t{3}; });
  ModelStatistics& statistics = served[0]->statistics();
  const InferTiming timing{.queue = 10us, .compute_input = 1us, .compute_infer = 5us, .compute_output = 2us};
  statistics.RecordExecution(2, timing, {});
  statistics.RecordSuccess(2, timing, 20us);
  statistics.RecordFailure(FailureReason::kRejected, 1us);
  statistics.RecordFailure(FailureReason::kBackend, 1us);
  statistics.RecordFailure(FailureReason::kBackend, 1us);
  served[0]->CountRun(RunWidth::kOne);
  for (const auto took : {9ms, 10ms, 11ms}) served[0]->run_bounds().Note(took, 10ms);

  const auto text = [&] { return prometheus::TextSerializer().Serialize(collector.Collect()); };
  const std::string shown = text();
  for (const char* line : {
           R"(nv_inference_request_success{model="m",version="1"} 1)",
           R"(nv_inference_request_failure{model="m",version="1",reason="REJECTED"} 1)",
           R"(nv_inference_request_failure{model="m",version="1",reason="CANCELED"} 0)",
           R"(nv_inference_request_failure{model="m",version="1",reason="BACKEND"} 2)",
           R"(nv_inference_request_failure{model="m",version="1",reason="OTHER"} 0)",
           R"(nv_inference_count{model="m",version="1"} 2)",
           R"(nv_inference_exec_count{model="m",version="1"} 1)",
           R"(nv_inference_request_duration_us{model="m",version="1"} 20)",
           R"(nv_inference_queue_duration_us{model="m",version="1"} 10)",
           R"(nv_inference_compute_infer_duration_us{model="m",version="1"} 5)",
           R"(tandem_run_predicted_bound_total{model="m",version="1",outcome="within"} 2)",
           R"(tandem_run_predicted_bound_total{model="m",version="1",outcome="exceeded"} 1)",
           R"(tandem_run_threads_total{model="m",version="1",threads="one"} 1)",
           R"(tandem_run_threads_total{model="m",version="1",threads="all"} 0)",
           R"(nv_inference_pending_request_count{model="m",version="1"} 3)",
           "# TYPE nv_cpu_utilization gauge",
           "process_open_fds ",
       }) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
  served.clear();
  EXPECT_THAT(text(), Not(HasSubstr("model=\"m\"")));
}

}  // namespace
}  // namespace tandem
