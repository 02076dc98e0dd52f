#pragma once

#include <exception>
#include <memory>
#include <utility>

#include "server/core/bulk_thread.h"
#include "server/http/exchange.h"

namespace tandem::rest {

// Runs `work`, which answers `exchange`, and answers for it when it throws.
template <typename Work>
void RunGuarded(http::Exchange& exchange, Work& work) noexcept {
  try {
    work();
  } catch (const std::exception&) {
    exchange.RespondToException();
  }
}

// The same on the bulk thread, for work that would keep a loop's other connections waiting. Whoever has gone by then
// costs nothing more.
template <typename Work>
void RunAside(BulkThread& bulk, std::shared_ptr<http::Exchange> exchange, Work work) {
  bulk.Do([exchange = std::move(exchange), work = std::move(work)]() mutable {
    auto unless_gone = [&] {
      if (!exchange->cancel()->cancelled()) return work();
      exchange->Respond(http::ErrorResponse({ErrorCode::kCancelled, "the client has gone"}));
    };
    RunGuarded(*exchange, unless_gone);
  });
}

}  // namespace tandem::rest
