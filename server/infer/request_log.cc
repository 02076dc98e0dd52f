#include "server/infer/request_log.h"

#include <chrono>
#include <optional>
#include <string>

#include "profiler/flight_events.h"

namespace tandem {
namespace {

// What a client chose is cut: it may be as long as a request.
constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestReason = 1024;

std::string Micros(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

void RequestLog::WriteLine(LogLevel level, const InferRequest& request, std::string_view version,
                           RequestOutcome outcome, const Result<InferResponse>& response, MonotonicTime now) {
  std::optional<std::uint64_t> left_out = 0;
  if (level == LogLevel::kError) left_out = errors_.Allow(now);
  if (!left_out) return;
  std::string made_id;
  if (request.id.empty()) {
    made_id = RequestName(request.number != 0 ? request.number : next_id_.fetch_add(1, std::memory_order_relaxed));
  }
  const std::string_view id = std::string_view(request.id.empty() ? made_id : request.id).substr(0, kLongestName);
  const std::string_view model = std::string_view(request.model).substr(0, kLongestName);
  const std::string total = Micros(now - request.arrival);
  if (response) {
    const InferTiming& timing = response->timing;
    Log(level, "request",
        {{"id", id},
         {"model", model},
         {"version", version},
         {"outcome", RequestOutcomeName(outcome)},
         {"queue_us", Micros(timing.queue)},
         {"compute_us", Micros(timing.compute_input + timing.compute_infer + timing.compute_output)},
         {"total_us", total}});
    return;
  }
  const std::string_view reason = std::string_view(response.error().message).substr(0, kLongestReason);
  if (*left_out == 0) {
    Log(level, "request",
        {{"id", id},
         {"model", model},
         {"version", version},
         {"outcome", RequestOutcomeName(outcome)},
         {"total_us", total},
         {"reason", reason}});
  } else {
    Log(level, "request",
        {{"id", id},
         {"model", model},
         {"version", version},
         {"outcome", RequestOutcomeName(outcome)},
         {"total_us", total},
         {"left_out", std::to_string(*left_out)},
         {"reason", reason}});
  }
}

}  // namespace tandem
