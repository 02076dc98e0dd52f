#include "server/http/exchange.h"

#include <new>
#include <utility>

#include "server/http/connection.h"
#include "server/http/direct_send.h"

namespace tandem::http {
namespace {

void Deliver(const std::weak_ptr<Connection>& to, Response response) {
  if (const auto connection = to.lock()) connection->Answer(std::move(response));
}

}  // namespace

Exchange::Exchange(Request request, std::shared_ptr<IoLoop> loop, std::weak_ptr<Connection> connection,
                   std::shared_ptr<DirectSend> direct)
    : request_(std::move(request)),
      loop_(std::move(loop)),
      connection_(std::move(connection)),
      direct_(std::move(direct)),
      cancel_(std::make_shared<CancelToken>()) {}

Exchange::~Exchange() {
  const State state = state_.load(std::memory_order_acquire);
  try {
    if (state == State::kOpen) Respond(ErrorResponse(500, "the request was dropped without an answer"));
    if (state == State::kStreaming) {
      loop_->Post([connection = connection_] {
        if (const auto c = connection.lock()) c->CutStream();
      });
    }
  } catch (const std::bad_alloc&) {
    // Without memory for the answer there is nothing left to say; the client's own timeout ends the wait.
  }
}

void Exchange::Respond(Response response) {
  State open = State::kOpen;
  if (!state_.compare_exchange_strong(open, State::kDone, std::memory_order_acq_rel)) return;
  if (loop_->InThread()) {
    Deliver(connection_, std::move(response));
    return;
  }
  if (direct_->Send(response)) {
    loop_->Post([connection = connection_] {
      if (const auto c = connection.lock()) c->TakeNoteOfAnswer();
    });
    return;
  }
  loop_->Post([connection = connection_, response = std::move(response)]() mutable {
    Deliver(connection, std::move(response));
  });
}

void Exchange::RespondToException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      Respond(ErrorResponse(503, "not enough memory to handle the request"));
    } catch (...) {
      Respond(ErrorResponse(500, "the request could not be handled"));
    }
  } catch (const std::bad_alloc&) {
    // As in the destructor.
  }
}

void Exchange::BeginStream(Response head) {
  State open = State::kOpen;
  if (!state_.compare_exchange_strong(open, State::kStreaming, std::memory_order_acq_rel)) return;
  gauge_ = std::make_shared<StreamGauge>();
  // Streams always go through the loop's queue, which keeps their pieces in order whichever thread writes.
  loop_->Post([connection = connection_, gauge = gauge_, head = std::move(head)]() mutable {
    if (const auto c = connection.lock()) c->BeginStream(std::move(head), std::move(gauge));
  });
}

void Exchange::Write(std::string data) {
  if (state_.load(std::memory_order_acquire) != State::kStreaming || data.empty()) return;
  gauge_->posted.fetch_add(data.size(), std::memory_order_relaxed);
  loop_->Post([connection = connection_, gauge = gauge_, data = std::move(data)] {
    if (const auto c = connection.lock()) c->WriteStream(data);
    gauge->posted.fetch_sub(data.size(), std::memory_order_relaxed);
  });
}

void Exchange::End() {
  State streaming = State::kStreaming;
  if (!state_.compare_exchange_strong(streaming, State::kDone, std::memory_order_acq_rel)) return;
  loop_->Post([connection = connection_] {
    if (const auto c = connection.lock()) c->EndStream();
  });
}

std::size_t Exchange::PendingBytes() const {
  if (!gauge_) return 0;
  return gauge_->posted.load(std::memory_order_relaxed) + gauge_->queued.load(std::memory_order_relaxed);
}

}  // namespace tandem::http
