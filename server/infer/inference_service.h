#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "colocation/arbiter.h"
#include "colocation/dispatcher.h"
#include "memory/shared_regions.h"
#include "profiler/flight_recorder.h"
#include "profiler/training_toll.h"
#include "server/infer/outcome.h"
#include "server/infer/prepare.h"
#include "server/infer/request_log.h"
#include "server/metrics/request_metrics.h"

namespace tandem {

// The one path of an inference request: find the model, check, queue, compute, shape the answer, count. Both front ends
// call it, from their own threads. Thread-safe.
class InferenceService {
 public:
  using FindServable =
      std::function<Result<std::shared_ptr<Servable>>(std::string_view model, std::string_view version)>;
  using Done = std::move_only_function<void(Result<InferResponse>)>;

  // Borrowed; all outlive the service.
  struct Parts {
    const Clock& clock;
    Dispatcher& dispatcher;
    const SharedRegions& regions;
    RequestMetrics& metrics;
    Arbiter* arbiter = nullptr;          // Told of the requests under way; may be null.
    FlightRecorder* recorder = nullptr;  // May be null.
    TrainingToll* toll = nullptr;        // May be null.
  };

  InferenceService(Parts parts, FindServable find, std::optional<std::chrono::microseconds> default_slo,
                   std::uint64_t max_shared_bytes = kMaxSharedBytes);

  // Calls `done` exactly once, perhaps before it returns, else on a dispatcher thread. `request.cancel` must be set.
  void Infer(InferRequest request, Done done);

  // Runs a piece of work of the server's own when its turn has come: trainers make way as for a request, and a drain
  // waits for it, but it is in no count of requests.
  void RunOwn(WorkItem item);

  // For InferRequest::number, by whoever brings a request; 0 when nothing is recorded.
  [[nodiscard]] std::uint64_t NextNumber() {
    return parts_.recorder != nullptr && parts_.recorder->on() ? parts_.recorder->NextRequest() : 0;
  }

  // Refuses a request by what is known before its body is read, and counts it; nullopt lets it come. Refused is only
  // one that could not be in time if it were here now: of those with a deadline by `slo`, at the most urgent level.
  // Once many bodies for its model were read, none of which named a deadline or a priority, this one is taken to name
  // neither; one a second is let come all the same, to see whether that still holds.
  [[nodiscard]] std::optional<Error> RefuseUnread(std::string_view model, std::string_view version,
                                                  std::optional<std::chrono::microseconds> slo);

  // From now on requests are refused; those under way finish.
  void StopAdmitting() { admitting_.store(false, std::memory_order_release); }
  // Requests that were let in and are not answered yet.
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_.load(std::memory_order_acquire); }

 private:
  struct Context;
  // What is kept of a request to tell whether training is to blame if it is late.
  struct Mark {
    TollSum toll;                        // What training had added to runs when it came.
    std::optional<Shortfall> shortfall;  // Once it is refused by prediction.
  };
  [[nodiscard]] Result<WorkItem> Prepare(InferRequest& request, std::shared_ptr<Servable> servable,
                                         OutputRegions& regions) const;
  // Tells the recorder of a request, once it is known whom it asks; null: nobody that is served.
  void RecordArrival(const InferRequest& request, const Servable* servable) const;
  // Tells why a request gets no further, before any queue.
  void RecordRefusal(const InferRequest& request, Admitted verdict) const;
  // Both, of one for which `error` was found instead of a servable.
  void RecordNotFound(const InferRequest& request, const Error& error) const;
  void Finish(Context& context, Result<WorkResult> result);
  [[nodiscard]] Result<InferResponse> Respond(Context& context, Result<WorkResult> result) const;
  [[nodiscard]] Status Shape(const Context& context, std::vector<Tensor>& outputs) const;
  void Count(const InferRequest& request, const Servable* servable, const Result<InferResponse>& response,
             std::uint64_t elements, const Mark& mark);
  // Of a request with a deadline that was not met.
  [[nodiscard]] Lateness Judge(const InferRequest& request, const Servable* servable, const Error* error,
                               std::uint64_t elements, const Mark& mark, MonotonicTime now) const;

  // Constant after construction.
  const Parts parts_;
  const FindServable find_;
  const std::optional<std::chrono::microseconds> default_slo_;
  const std::uint64_t max_shared_bytes_;

  RequestLog log_;
  std::atomic<bool> admitting_{true};
  std::atomic<std::int64_t> in_flight_{0};
};

}  // namespace tandem
