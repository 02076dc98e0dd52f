#include "server/infer/inference_service.h"

#include <algorithm>
#include <utility>

#include "server/infer/classification.h"
#include "server/infer/prepare.h"

namespace tandem {
namespace {

RequestOutcome OutcomeOf(const Result<InferResponse>& response) {
  if (response) return RequestOutcome::kSuccess;
  switch (response.error().code) {
    case ErrorCode::kUnavailable: return RequestOutcome::kRejected;
    case ErrorCode::kDeadlineExceeded: return RequestOutcome::kExpired;
    case ErrorCode::kCancelled: return RequestOutcome::kCancelled;
    case ErrorCode::kInternal: return RequestOutcome::kError;
    default: return RequestOutcome::kInvalid;
  }
}

}  // namespace

// What is kept of a request while it is computed.
struct InferenceService::Context {
  InferRequest request;  // Without its inputs, which the work owns.
  std::shared_ptr<Servable> servable;
  std::uint64_t elements = 1;
  Done done;
};

InferenceService::InferenceService(Parts parts, FindServable find, std::optional<std::chrono::microseconds> default_slo)
    : parts_(parts), find_(std::move(find)), default_slo_(default_slo) {}

void InferenceService::Infer(InferRequest request, Done done) {
  const auto refuse = [&](Error error, const Servable* servable) {
    Result<InferResponse> response = std::unexpected(std::move(error));
    Count(request, servable, response, 0);
    done(std::move(response));
  };
  if (!admitting_.load(std::memory_order_acquire)) {
    return refuse({ErrorCode::kUnavailable, "the server is shutting down"}, nullptr);
  }
  auto servable = find_(request.model, request.version);
  if (!servable) return refuse(servable.error(), nullptr);
  request.deadline = ResolveDeadline(request, **servable, default_slo_);
  auto item = PrepareWork(request, *servable, parts_.regions);
  if (!item) return refuse(item.error(), servable->get());

  request.inputs.clear();
  auto context = std::make_unique<Context>(Context{.request = std::move(request),
                                                   .servable = *std::move(servable),
                                                   .elements = static_cast<std::uint64_t>(item->batch),
                                                   .done = std::move(done)});
  item->done = [this, context = std::move(context)](Result<WorkResult> result) { Finish(*context, std::move(result)); };
  in_flight_.fetch_add(1, std::memory_order_acq_rel);
  parts_.dispatcher.Submit(*std::move(item));
}

void InferenceService::Finish(Context& context, Result<WorkResult> result) {
  Result<InferResponse> response =
      result ? Respond(context, *std::move(result)) : Result<InferResponse>(std::unexpected(std::move(result).error()));
  Count(context.request, context.servable.get(), response, context.elements);
  context.done(std::move(response));
  in_flight_.fetch_sub(1, std::memory_order_acq_rel);
}

Result<InferResponse> InferenceService::Respond(Context& context, WorkResult result) const {
  const InferRequest& request = context.request;
  const Servable& servable = *context.servable;
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const RequestedOutput& asked = request.outputs[i];
    Tensor& output = result.outputs[i];
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
      TANDEM_ASSIGN(const auto region, parts_.regions.Find(asked.shared->region));
      TANDEM_TRY(region->Write(asked.shared->offset, output.data.view));
    }
  }
  return InferResponse{.model = servable.name(),
                       .version = servable.version_text(),
                       .id = request.id,
                       .outputs = std::move(result.outputs),
                       .timing = result.timing};
}

void InferenceService::Count(const InferRequest& request, const Servable* servable,
                             const Result<InferResponse>& response, std::uint64_t elements) {
  const MonotonicTime now = parts_.clock.Now();
  const std::chrono::nanoseconds total = now - request.arrival;
  if (servable != nullptr) {
    if (response) {
      servable->statistics().RecordSuccess(elements, response->timing, total);
    } else {
      servable->statistics().RecordFailure(total);
    }
  }
  parts_.metrics.Record({.model = servable == nullptr ? std::string_view() : servable->name(),
                         .version = servable == nullptr ? std::string_view() : servable->version_text(),
                         .outcome = OutcomeOf(response),
                         .latency = total,
                         .has_deadline = request.deadline.has_value(),
                         .in_time = request.deadline && now <= *request.deadline});
}

}  // namespace tandem
