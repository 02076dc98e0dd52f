// The sending half of Connection: answers, streams and the watch over slow clients.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "api/base/format.h"
#include "server/http/connection.h"
#include "server/http/exchange.h"
#include "server/http/shard.h"

namespace tandem::http {
namespace {

// A server that goes does not wait long for clients that have their answer.
constexpr std::chrono::milliseconds kLingerWhileDraining{500};
// Answers up to this size find an eighth of the budget kept for them, whatever the large ones take.
constexpr std::size_t kSmallAnswer = 64 * 1024;
constexpr std::size_t kKeptForSmall = 8;

}  // namespace

void Connection::Answer(Response response) {
  if (phase_ != Phase::kHandling || answered_) return;
  Guarded([&] { Send(std::move(response)); });
}

void Connection::TakeNoteOfAnswer() {
  if (unsettled_) {
    Guarded([this] {
      SettleAnswer();
      UpdateEvents();
    });
    return;
  }
  if (phase_ != Phase::kHandling || answered_) return;
  const std::optional<DirectSend::Sent> sent = direct_->TakeSent();
  if (!sent) return;
  Guarded([&] {
    answered_ = true;
    cancel_.reset();
    output_sent_ += sent->bytes;
    if (shard_.core().draining.load(std::memory_order_relaxed) || ended_) delivery_.keep_alive = false;
    if (!sent->rest.empty()) SendText(sent->rest);
    FinishIfSent();
    UpdateEvents();
  });
}

void Connection::GoOnBehindAnswer() {
  // The kernel lets the client that an answer wakes go before the thread that wrote it: waiting for that thread's word
  // here, the next request would be read only after all of it was sent.
  if (phase_ != Phase::kHandling || answered_ || !delivery_.keep_alive || !direct_->begun()) return;
  if (shard_.core().draining.load(std::memory_order_relaxed)) return;
  answered_ = true;
  unsettled_ = true;
  cancel_.reset();
  FinishIfSent();
}

void Connection::SettleAnswer() {
  if (!std::exchange(unsettled_, false)) return;
  std::optional<DirectSend::Sent> sent = direct_->TakeSent();
  if (!sent) return;
  output_sent_ += sent->bytes;
  if (!sent->rest.empty()) Queue(std::move(sent->rest));
}

void Connection::CloseAfterAnswer() {
  SettleAnswer();
  if (output_.empty()) {
    Close();
    return;
  }
  phase_ = Phase::kHandling;
  answered_ = true;
  delivery_.keep_alive = false;
}

bool Connection::HoldAnswer(std::size_t bytes) {
  const std::size_t kept = bytes > kSmallAnswer ? shard_.core().answers->limit() / kKeptForSmall : 0;
  BudgetShare share(shard_.core().answers);
  if (!share.TakeAllBut(kept, bytes)) return false;
  answer_share_ = std::move(share);
  return true;
}

void Connection::Send(Response response) {
  SettleAnswer();
  bool large = HasContent(response, delivery_) && response.content_size() > kCopyLimit;
  if (large && !HoldAnswer(response.content_size())) {
    response = ErrorResponse(503, "no memory is left for answers: clients take theirs too slowly");
    large = false;
  }
  phase_ = Phase::kHandling;
  answered_ = true;
  cancel_.reset();
  direct_->Forbid();
  if (shard_.core().draining.load(std::memory_order_relaxed) || ended_) delivery_.keep_alive = false;
  delivery_.date = shard_.date();
  std::string& text = shard_.output();
  text.clear();
  if (large) {
    AppendHead(response, delivery_, text);
    Queue(text);
    output_.Add(std::move(response.body));
    for (Bytes& part : response.parts) output_.Add(std::move(part));
    Flush();
  } else {
    AppendWhole(response, delivery_, text);
    SendText(text);
  }
  FinishIfSent();
  UpdateEvents();
}

void Connection::SendText(std::string_view text) {
  if (output_.empty()) {
    const std::span<const std::byte> piece = std::as_bytes(std::span(text));
    const IoResult result = stream_->Write({&piece, 1});
    if (result.kind == IoResult::Kind::kBytes) {
      text.remove_prefix(result.bytes);
      output_sent_ += result.bytes;
    }
    if (result.kind == IoResult::Kind::kBroken || result.kind == IoResult::Kind::kEnd) {
      Close();
      return;
    }
  }
  if (!text.empty()) Queue(std::string(text));
}

void Connection::Queue(std::string text) {
  if (output_.empty()) output_pace_.Begin(shard_.Now(), Delivered());
  output_.Add(std::move(text));
}

void Connection::Flush() {
  const IoResult result = output_.Flush(*stream_);
  if (result.kind == IoResult::Kind::kBroken) {
    Close();
    return;
  }
  if (result.kind == IoResult::Kind::kBytes) output_sent_ += result.bytes;
  if (gauge_) gauge_->queued.store(output_.size(), std::memory_order_relaxed);
}

void Connection::BeginStream(Response head, std::shared_ptr<StreamGauge> gauge) {
  if (phase_ != Phase::kHandling || answered_) return;
  Guarded([&] {
    answered_ = true;
    streaming_ = true;
    direct_->Forbid();
    gauge_ = std::move(gauge);
    delivery_.chunked = true;
    if (delivery_.minor_version == 0 || shard_.core().draining.load(std::memory_order_relaxed)) {
      delivery_.keep_alive = false;
    }
    delivery_.date = shard_.date();
    const std::string first = std::exchange(head.body, {});
    std::string text;
    AppendHead(head, delivery_, text);
    Queue(std::move(text));
    WriteStream(first);
    Flush();
    UpdateEvents();
    if (half_closed_) OnPeerEnd();
  });
}

void Connection::WriteStream(std::string_view data) {
  if (phase_ != Phase::kHandling || !streaming_ || delivery_.head_only || data.empty()) return;
  Guarded([&] {
    std::string text;
    text.reserve(data.size() + 24);
    if (delivery_.minor_version == 1) AppendFormat(text, "{:x}\r\n", data.size());
    text += data;
    if (delivery_.minor_version == 1) text += "\r\n";
    Queue(std::move(text));
    Flush();
    if (output_.size() > shard_.options().max_stream_pending) Close();
    UpdateEvents();
  });
}

void Connection::EndStream() {
  if (phase_ != Phase::kHandling || !streaming_) return;
  Guarded([&] {
    if (delivery_.minor_version == 1 && !delivery_.head_only) Queue("0\r\n\r\n");
    if (!output_.empty()) Flush();
    streaming_ = false;
    gauge_.reset();
    cancel_.reset();
    FinishIfSent();
    UpdateEvents();
  });
}

void Connection::CutStream() {
  if (streaming_) Close();
}

std::size_t Connection::Delivered() const {
  // The kernel takes megabytes at once and then none for long, however steadily the client reads.
  int unsent = 0;
  if (::ioctl(stream_->fd(), SIOCOUTQ, &unsent) != 0) return output_sent_;
  return output_sent_ - std::min(output_sent_, static_cast<std::size_t>(unsent));
}

bool Connection::OutputStuck(MonotonicTime now) {
  if (output_.empty()) return false;
  const Timeouts& timeouts = shard_.options().timeouts;
  return output_pace_.TooSlow(now, Delivered(), timeouts.answer_window, timeouts.min_bytes_per_second);
}

void Connection::Expire(MonotonicTime now) {
  Guarded([&] {
    if (OutputStuck(now)) {
      Close();
      return;
    }
    const Timeouts& timeouts = shard_.options().timeouts;
    const auto waited = now - phase_since_;
    const bool draining = shard_.core().draining.load(std::memory_order_relaxed);
    switch (phase_) {
      case Phase::kHandshake:
        if (waited > timeouts.header) Close();
        break;
      case Phase::kIdle:
        if (waited > (shard_.core().crowded() ? std::min(timeouts.crowded_idle, timeouts.idle) : timeouts.idle))
          Close();
        break;
      case Phase::kHead:
        if (waited > timeouts.header) Refuse(408, "the request's head did not arrive in time");
        break;
      case Phase::kBody:
        if (body_pace_.TooSlow(now, parser_.body_bytes(), timeouts.body_window, timeouts.min_bytes_per_second)) {
          Refuse(408, "the request's body arrives too slowly");
        }
        break;
      case Phase::kLingering:
        if (waited > (draining ? std::min(kLingerWhileDraining, timeouts.linger) : timeouts.linger)) Close();
        break;
      case Phase::kHandling:
      case Phase::kClosed: break;
    }
  });
}

}  // namespace tandem::http
