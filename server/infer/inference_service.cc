#include "server/infer/inference_service.h"

#include <new>
#include <utility>

#include "server/infer/classification.h"
#include "server/infer/outcome.h"

namespace tandem {
namespace {

// Short enough to fit into a string without allocating.
Error OutOfMemory() {
  return {ErrorCode::kUnavailable, "out of memory"};
}

// Counts a request for that model as under way for as long as it lives.
class InFlight {
 public:
  InFlight(std::atomic<std::int64_t>& count, Arbiter* arbiter, ModelBit model)
      : count_(count), arbiter_(arbiter), model_(model) {
    count_.fetch_add(1, std::memory_order_acq_rel);
    if (arbiter_ != nullptr) arbiter_->RequestBegan(model_);
  }
  ~InFlight() {
    if (arbiter_ != nullptr) arbiter_->RequestEnded(model_);
    count_.fetch_sub(1, std::memory_order_acq_rel);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  std::atomic<std::int64_t>& count_;
  Arbiter* const arbiter_;
  const ModelBit model_;
};

}  // namespace

// What is kept of a request while it is computed. Goes when it has been answered.
struct InferenceService::Context {
  Context(InferRequest request, std::shared_ptr<Servable> servable, OutputRegions regions, std::int64_t batch,
          Done done, TollSum toll, std::atomic<std::int64_t>& in_flight, Arbiter* arbiter)
      : in_flight(in_flight, arbiter, servable->model_bit()),
        request(std::move(request)),
        servable(std::move(servable)),
        regions(std::move(regions)),
        elements(static_cast<std::uint64_t>(batch)),
        mark{.toll = toll, .shortfall = {}},
        done(std::move(done)) {}

  const InFlight in_flight;
  const InferRequest request;  // Without its inputs, which the work owns.
  const std::shared_ptr<Servable> servable;
  const OutputRegions regions;
  const std::uint64_t elements;
  Mark mark;
  Done done;
};

InferenceService::InferenceService(Parts parts, FindServable find, std::optional<std::chrono::microseconds> default_slo,
                                   std::uint64_t max_shared_bytes)
    : parts_(parts), find_(std::move(find)), default_slo_(default_slo), max_shared_bytes_(max_shared_bytes) {}

void InferenceService::Infer(InferRequest request, Done done) {
  const auto refuse = [&](Error error, const Servable* servable) {
    // Of a request that has not been prepared, what it says itself is known.
    if (!request.deadline) request.deadline = OwnDeadline(request);
    Result<InferResponse> response = std::unexpected(std::move(error));
    Count(request, servable, response, 0, {});
    done(std::move(response));
  };
  if (!admitting_.load(std::memory_order_acquire)) {
    RecordArrival(request, nullptr);
    RecordRefusal(request, Admitted::kStopping);
    return refuse({ErrorCode::kUnavailable, "the server is shutting down"}, nullptr);
  }
  auto servable = find_(request.model, request.version);
  if (!servable) {
    RecordNotFound(request, servable.error());
    return refuse(servable.error(), nullptr);
  }
  RecordArrival(request, servable->get());
  OutputRegions regions;
  auto item = Prepare(request, *servable, regions);
  if (!item) {
    RecordRefusal(request, item.error().code == ErrorCode::kUnavailable ? Admitted::kNoMemory : Admitted::kUnfit);
    return refuse(item.error(), servable->get());
  }

  item->number = request.number;
  request.inputs.clear();
  const TollSum toll = parts_.toll == nullptr ? TollSum{} : parts_.toll->Added(request.arrival);
  auto context = std::make_unique<Context>(std::move(request), *std::move(servable), std::move(regions), item->batch,
                                           std::move(done), toll, in_flight_, parts_.arbiter);
  item->shortfall = &context->mark.shortfall;
  item->done = [this, context = std::move(context)](Result<WorkResult> result) { Finish(*context, std::move(result)); };
  parts_.dispatcher.Submit(*std::move(item));
}

void InferenceService::RunOwn(WorkItem item) {
  if (!admitting_.load(std::memory_order_acquire)) {
    return Answer(item, Fail(ErrorCode::kUnavailable, "the server is shutting down"));
  }
  item.done = [under_way = std::make_unique<const InFlight>(in_flight_, parts_.arbiter, item.servable->model_bit()),
               done = std::move(item.done)](Result<WorkResult> result) mutable { done(std::move(result)); };
  parts_.dispatcher.Submit(std::move(item));
}

void InferenceService::RecordArrival(const InferRequest& request, const Servable* servable) const {
  if (request.number == 0) return;
  FlightRecorder& recorder = *parts_.recorder;
  recorder.Write(
      RequestArrived{.at = request.arrival,
                     .request = request.number,
                     .model = servable == nullptr ? 0 : recorder.names().NumberOf(servable->name()),
                     .waits_for_company = servable != nullptr && servable->batching().max_queue_delay.count() > 0,
                     .id = ClientId::Of(request.id)});
}

void InferenceService::RecordRefusal(const InferRequest& request, Admitted verdict) const {
  if (request.number == 0) return;
  parts_.recorder->Write(RequestAdmission{.at = parts_.clock.Now(), .request = request.number, .verdict = verdict});
}

void InferenceService::RecordNotFound(const InferRequest& request, const Error& error) const {
  if (request.number == 0) return;
  if (error.code == ErrorCode::kUnavailable) {
    RecordArrival(request, nullptr);
    return RecordRefusal(request, Admitted::kNotReady);
  }
  // Whether another version is there.
  const auto other = request.version.empty() ? Result<std::shared_ptr<Servable>>() : find_(request.model, "");
  const bool served = other && *other != nullptr;
  RecordArrival(request, served ? other->get() : nullptr);
  RecordRefusal(request, served ? Admitted::kNoVersion : Admitted::kNoModel);
}

std::optional<Error> InferenceService::RefuseUnread(std::string_view model, std::string_view version,
                                                    std::optional<std::chrono::microseconds> slo) {
  const auto servable = find_(model, version);
  if (!servable) return std::nullopt;
  RequestHabits& habits = (*servable)->habits();
  const bool by_habit = habits.name_nothing();
  if (!slo && !by_habit) return std::nullopt;
  InferRequest request;
  request.model = model;
  request.version = version;
  request.slo = slo;
  request.arrival = parts_.clock.Now();
  request.deadline = ResolveDeadline(request, **servable, default_slo_);
  if (!request.deadline) return std::nullopt;
  const std::uint64_t level = ResolvePriority(by_habit ? 0 : 1, (*servable)->batching());
  Mark mark;
  const Status foreseen = parts_.dispatcher.Foresee(**servable, level, *request.deadline, mark.shortfall);
  if (foreseen || (by_habit && habits.TryProbe(request.arrival))) return std::nullopt;
  Count(request, servable->get(), std::unexpected(foreseen.error()), 0, mark);
  return foreseen.error();
}

Result<WorkItem> InferenceService::Prepare(InferRequest& request, std::shared_ptr<Servable> servable,
                                           OutputRegions& regions) const {
  servable->habits().Note(request.slo || request.timeout || request.priority != 0);
  request.deadline = ResolveDeadline(request, *servable, default_slo_);
  try {
    return PrepareWork(request, std::move(servable), parts_.regions, max_shared_bytes_, regions);
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory());
  }
}

void InferenceService::Finish(Context& context, Result<WorkResult> result) {
  Result<InferResponse> response = Respond(context, std::move(result));
  try {
    Count(context.request, context.servable.get(), response, context.elements, context.mark);
  } catch (const std::bad_alloc&) {
    // The answer matters more than its place in the statistics.
  }
  context.done(std::move(response));
}

Result<InferResponse> InferenceService::Respond(Context& context, Result<WorkResult> result) const {
  if (!result) return std::unexpected(std::move(result).error());
  try {
    TANDEM_TRY(Shape(context, result->outputs));
    return InferResponse{.model = context.servable->name(),
                         .version = context.servable->version_text(),
                         .id = context.request.id,
                         .outputs = std::move(result->outputs),
                         .timing = result->timing};
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory());
  }
}

Status InferenceService::Shape(const Context& context, std::vector<Tensor>& outputs) const {
  const Servable& servable = *context.servable;
  for (std::size_t i = 0; i < context.request.outputs.size(); ++i) {
    const RequestedOutput& asked = context.request.outputs[i];
    Tensor& output = outputs[i];
    if (asked.classification > 0) {
      static const std::vector<std::string> kNoLabels;
      const auto labels = servable.labels().find(asked.name);
      TANDEM_ASSIGN(output, Classify(output, asked.classification, servable.batching().max_batch_size > 0,
                                     labels == servable.labels().end() ? kNoLabels : labels->second));
    }
    if (asked.shared) {
      if (output.data.size() > asked.shared->byte_size) {
        return Invalid("output '{}' has {} bytes but shared-memory range of region '{}' holds {}", asked.name,
                       output.data.size(), asked.shared->region, asked.shared->byte_size);
      }
      TANDEM_TRY(context.regions[i]->Write(asked.shared->offset, output.data.view));
    }
  }
  return {};
}

Lateness InferenceService::Judge(const InferRequest& request, const Servable* servable, const Error* error,
                                 std::uint64_t elements, const Mark& mark, MonotonicTime now) const {
  if (parts_.toll == nullptr || servable == nullptr) return {};
  if (mark.shortfall) {
    const auto added = parts_.toll->TrainedSince(now) ? mark.shortfall->added : std::chrono::nanoseconds(0);
    return {.late = mark.shortfall->late,
            .added = added,
            .doubtful = mark.shortfall->sure ? std::chrono::nanoseconds(0) : added};
  }
  const bool uncomputed = error != nullptr && error->code == ErrorCode::kDeadlineExceeded;
  const bool stopped = error != nullptr && error->code == ErrorCode::kCancelled;
  // Neither room in a queue nor a run that fails is a matter of time.
  if (elements == 0 || (error != nullptr && !uncomputed && !stopped)) return {};
  TollSum added = parts_.toll->Added(now) - mark.toll;
  AloneTime needed;
  if (uncomputed) needed = servable->Alone(static_cast<std::int64_t>(elements), now);
  if (!needed.sure) added.doubtful = added.added;
  return LatenessOf(request.arrival, *request.deadline, now, needed.typical, added);
}

void InferenceService::Count(const InferRequest& request, const Servable* servable,
                             const Result<InferResponse>& response, std::uint64_t elements, const Mark& mark) {
  const MonotonicTime now = parts_.clock.Now();
  const std::chrono::nanoseconds total = now - request.arrival;
  const Error* error = response ? nullptr : &response.error();
  const RequestOutcome outcome = OutcomeOf(error, request.deadline, now);
  const SloVerdict slo = VerdictOf(error, request.deadline, now);
  const bool lost = slo == SloVerdict::kMissed || slo == SloVerdict::kRejected;
  const Lateness lateness = lost ? Judge(request, servable, error, elements, mark, now) : Lateness{};
  const MissCause cause = CauseOf(slo, lateness);
  if (request.number != 0) {
    parts_.recorder->Write(RequestAnswered{.at = now,
                                           .request = request.number,
                                           .outcome = static_cast<std::uint8_t>(outcome),
                                           .slo = static_cast<std::uint8_t>(slo),
                                           .cause = static_cast<std::uint8_t>(cause),
                                           .error = error == nullptr ? std::nullopt : std::optional(error->code),
                                           .deadline = request.deadline,
                                           .added = lost ? std::optional(lateness.added) : std::nullopt});
  }
  if (servable != nullptr) {
    if (error == nullptr) {
      servable->statistics().RecordSuccess(elements, response->timing, total);
    } else {
      servable->statistics().RecordFailure(ReasonOf(*error), total);
    }
  }
  parts_.metrics.Record({.model = servable == nullptr ? std::string_view() : servable->name(),
                         .outcome = outcome,
                         .latency = total,
                         .slo = slo,
                         .cause = cause});
  log_.Write(request, servable == nullptr ? std::string_view() : servable->version_text(), outcome, response, now);
}

}  // namespace tandem
