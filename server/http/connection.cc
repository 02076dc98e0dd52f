#include "server/http/connection.h"

#include <exception>
#include <optional>
#include <utility>

#include <sys/epoll.h>
#include <trantor/net/Channel.h>

#include "server/http/exchange.h"
#include "server/http/shard.h"

namespace tandem::http {
namespace {

// A fast sender must not keep the loop from the other connections; the poller brings us back at once.
constexpr int kReadsPerTurn = 16;
// Held input above this gives its memory back once used.
constexpr std::size_t kKeptCapacity = 512;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

Connection::Connection(Shard& shard, std::unique_ptr<Stream> stream)
    : shard_(shard), stream_(std::move(stream)), parser_(shard.options().limits, shard.core().budget) {}

Connection::~Connection() = default;

void Connection::Open() {
  Enter(stream_->is_tls() ? Phase::kHandshake : Phase::kIdle);
  Guarded([this] {
    channel_ = std::make_unique<trantor::Channel>(&shard_.loop()->events(), stream_->fd());
    channel_->setEventCallback([this] { Guarded([this] { OnEvent(channel_->revents()); }); });
    UpdateEvents();
  });
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  EndRequest();
  phase_ = Phase::kClosed;
  if (watched_ != 0) channel_->disableAll();
  if (registered_) channel_->remove();
  direct_->Forbid();
  stream_.reset();
  output_.Clear();
  answer_share_ = {};
  const std::shared_ptr<CancelToken> cancel = std::move(cancel_);
  shard_.Remove(*this);
  if (cancel) cancel->Cancel();
}

void Connection::Enter(Phase phase) {
  phase_ = phase;
  phase_since_ = shard_.Now();
}

void Connection::UpdateEvents() {
  if (phase_ == Phase::kClosed) return;
  int events = 0;
  if (!output_.empty() || stream_->wants_write()) events |= EPOLLOUT;
  if (!ended_) {
    // While the socket is not read, its end is still to be heard of.
    if (held_.empty()) {
      events |= EPOLLIN;
    } else if (!half_closed_) {
      events |= EPOLLRDHUP;
    }
  }
  // The poller forgets a channel that waits for nothing, and then a reset would go unheard.
  if (events == 0) events = EPOLLERR;
  if (events == watched_) return;
  watched_ = events;
  registered_ = true;
  channel_->updateEvents(events);
}

void Connection::OnEvent(int events) {
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
    Close();
    return;
  }
  // TLS may have to write before it can read on.
  const bool read_waits = output_.empty() && stream_->wants_write();
  if ((events & EPOLLOUT) != 0 && !output_.empty()) {
    Flush();
    FinishIfSent();
  }
  if (phase_ == Phase::kClosed) return;
  if (!held_.empty()) {
    if ((events & EPOLLRDHUP) != 0) OnPeerEnd();
  } else if ((events & EPOLLIN) != 0 || ((events & EPOLLOUT) != 0 && read_waits)) {
    OnReadable();
  }
  UpdateEvents();
}

void Connection::OnReadable() {
  if (phase_ == Phase::kHandshake) {
    const IoResult result = stream_->Handshake();
    if (result.kind == IoResult::Kind::kWouldBlock) return;
    if (result.kind != IoResult::Kind::kBytes) {
      Close();
      return;
    }
    Enter(Phase::kIdle);
  }
  GoOnBehindAnswer();
  for (int i = 0; i < kReadsPerTurn || (phase_ != Phase::kClosed && stream_->holds_bytes()); ++i) {
    if (!ReadOnce()) return;
  }
}

bool Connection::ReadOnce() {
  std::span<std::byte> room;
  if (phase_ == Phase::kBody) room = parser_.DirectRoom();
  const bool direct = !room.empty();
  if (!direct) room = shard_.input();
  const IoResult result = stream_->Read(room);
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock: return false;
    case IoResult::Kind::kBroken: Close(); return false;
    case IoResult::Kind::kEnd: OnEnd(); return false;
    case IoResult::Kind::kBytes: break;
  }
  if (direct) {
    OnParsed(parser_.CommitDirect(result.bytes));
  } else {
    OnInput({reinterpret_cast<const char*>(room.data()), result.bytes});
  }
  if (phase_ == Phase::kClosed || !held_.empty()) return false;
  // A plain socket that filled less than the room is empty now.
  return result.bytes == room.size() || stream_->is_tls();
}

void Connection::OnInput(std::string_view in) {
  if (phase_ == Phase::kLingering) {
    discarded_ += in.size();
    if (discarded_ > shard_.options().max_linger_bytes) Close();
    return;
  }
  std::size_t used = 0;
  Parse(in, used);
  if (phase_ != Phase::kHandling || used == in.size()) return;
  held_.assign(in.substr(used));
  held_used_ = 0;
}

void Connection::OnEnd() {
  ended_ = true;
  switch (phase_) {
    case Phase::kHead:
    case Phase::kBody: Refuse(400, "the request ended before it was complete"); break;
    case Phase::kHandling: OnPeerEnd(); break;
    default: CloseAfterAnswer();
  }
}

void Connection::OnPeerEnd() {
  half_closed_ = true;
  UpdateEvents();
  if (!cancel_) return;  // Answered: what is still to be sent will show whether anybody is there.
  if (!streaming_ && delivery_.minor_version == 1) {
    // A client that only closed its sending side passes over this line; the system of one that has gone resets the
    // connection, which then is closed and its work cancelled.
    if (!std::exchange(probed_, true) && direct_->Forbid()) SendText(kContinue);
    UpdateEvents();
    return;
  }
  // The last statement: whoever hears of it may answer at once.
  const std::shared_ptr<CancelToken> cancel = cancel_;
  cancel->Cancel();
}

void Connection::Parse(std::string_view in, std::size_t& used) {
  parsing_ = true;
  while (used < in.size() && (phase_ == Phase::kIdle || phase_ == Phase::kHead || phase_ == Phase::kBody)) {
    if (phase_ == Phase::kIdle) {
      Enter(Phase::kHead);
      arrival_ = phase_since_;
    }
    OnParsed(parser_.Feed(in, used));
  }
  parsing_ = false;
}

void Connection::OnParsed(RequestParser::Event event) {
  switch (event) {
    case RequestParser::Event::kNeedMore: return;
    case RequestParser::Event::kHead: OnHead(); return;
    case RequestParser::Event::kComplete: HandToHandler(); return;
    case RequestParser::Event::kError: Refuse(parser_.error().status, parser_.error().message); return;
  }
}

void Connection::OnHead() {
  if (shard_.options().refuse_early) {
    if (std::optional<Response> refusal = shard_.options().refuse_early(parser_.head())) {
      // The body will not be read, so no further request can be found behind it.
      delivery_ = {.keep_alive = false,
                   .minor_version = parser_.head().minor_version(),
                   .head_only = parser_.head().method() == Method::kHead};
      Send(std::move(*refusal));
      return;
    }
  }
  Enter(Phase::kBody);
  body_pace_.Begin(phase_since_, 0);
  if (parser_.expects_continue()) {
    SettleAnswer();
    SendText(kContinue);
  }
}

void Connection::HandToHandler() {
  SettleAnswer();
  RequestParser::Taken taken = parser_.Take();
  delivery_ = {.keep_alive = taken.head.keep_alive(),
               .minor_version = taken.head.minor_version(),
               .head_only = taken.head.method() == Method::kHead};
  auto exchange =
      std::make_shared<Exchange>(Request{std::move(taken.head), std::move(taken.body), arrival_, shard_.core().budget},
                                 shard_.loop(), weak_from_this(), direct_);
  cancel_ = exchange->cancel();
  answered_ = false;
  probed_ = false;
  phase_ = Phase::kHandling;
  being_handled_ = true;
  if (!stream_->is_tls() && output_.empty() && !half_closed_ &&
      !shard_.core().draining.load(std::memory_order_relaxed)) {
    delivery_.date = shard_.date();
    direct_->Allow(stream_->fd(), delivery_);
  }
  shard_.loop()->RequestBegins();
  shard_.core().requests.fetch_add(1, std::memory_order_relaxed);
  try {
    shard_.core().handler(exchange);
  } catch (const std::exception&) {
    exchange->RespondToException();
  }
  if (half_closed_ && phase_ == Phase::kHandling) OnPeerEnd();
}

void Connection::EndRequest() {
  if (std::exchange(being_handled_, false)) shard_.loop()->RequestEnds();
}

void Connection::Refuse(int status, std::string_view message) {
  delivery_ = {.keep_alive = false};
  Send(ErrorResponse(status, message));
}

void Connection::ContinueWithHeldInput() {
  if (!held_.empty()) {
    Parse(held_, held_used_);
    if (held_used_ < held_.size() && phase_ == Phase::kHandling) return;
    held_.clear();
    if (held_.capacity() > kKeptCapacity) held_.shrink_to_fit();
    // What TLS has already taken from the socket would not wake us.
    if (phase_ != Phase::kClosed && stream_->holds_bytes()) OnReadable();
  }
  if (ended_ && phase_ == Phase::kIdle) CloseAfterAnswer();
}

void Connection::FinishIfSent() {
  if (phase_ != Phase::kHandling || !answered_ || streaming_ || !output_.empty()) return;
  answer_share_ = {};
  EndRequest();
  if (!delivery_.keep_alive) {
    BeginLinger();
    return;
  }
  Enter(Phase::kIdle);
  if (!parsing_) ContinueWithHeldInput();
}

void Connection::BeginLinger() {
  held_.clear();
  if (ended_) {
    Close();
    return;
  }
  stream_->ShutdownWrite();
  discarded_ = 0;
  Enter(Phase::kLingering);
}

void Connection::Drain() {
  Guarded([this] {
    // A request that has arrived already is still answered.
    if (phase_ == Phase::kIdle) OnReadable();
    if (phase_ == Phase::kIdle || phase_ == Phase::kHandshake) CloseAfterAnswer();
    if (phase_ == Phase::kClosed) return;
    // The answer must say that the connection ends with it.
    direct_->Forbid();
    UpdateEvents();
  });
}

}  // namespace tandem::http
