#include "loadgen/http_transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include <sys/epoll.h>

#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kScratchBytes = 256 << 10;
constexpr int kEventsPerPoll = 256;

std::uint64_t EventData(std::int32_t index, std::uint32_t serial) {
  return (static_cast<std::uint64_t>(serial) << 32) | static_cast<std::uint32_t>(index);
}

int WaitForEvents(int epoll, std::array<epoll_event, kEventsPerPoll>& events, nanoseconds timeout) {
  timeout = std::max(timeout, nanoseconds(0));
  const timespec limit{.tv_sec = static_cast<time_t>(timeout.count() / 1'000'000'000),
                       .tv_nsec = static_cast<long>(timeout.count() % 1'000'000'000)};
  const int count = epoll_pwait2(epoll, events.data(), kEventsPerPoll, &limit, nullptr);
  if (count >= 0 || errno != ENOSYS) return count;
  // Kernels before 5.11. Rounding down keeps requests on time; the caller asks again for the rest.
  return epoll_wait(epoll, events.data(), kEventsPerPoll, static_cast<int>(timeout / std::chrono::milliseconds(1)));
}

Status CheckHandshake(const HttpTransportOptions& options, const SocketAddress& address, const TlsClient& tls) {
  const auto stream = OpenStream(address, &tls, options.connect_timeout);
  if (stream) return {};
  return Fail(stream.error().code, "cannot connect to https://{}: {}", Excerpt(HostAndPort(options.host, options.port)),
              stream.error().message);
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> HttpTransport::Create(const HttpTransportOptions& options,
                                                             std::vector<HttpRequest> requests, const Clock& clock) {
  if (options.max_connections < 1) return Invalid("connections must be at least 1, got 0");
  if (options.request_timeout <= nanoseconds(0)) return Invalid("the request timeout must be above 0");
  std::unique_ptr<TlsClient> tls;
  if (options.tls) {
    TANDEM_ASSIGN(tls, TlsClient::Create(*options.tls, options.host, "http/1.1"));
  }
  TANDEM_ASSIGN(const SocketAddress address, FindServer(options.host, options.port, options.connect_timeout));
  if (tls) TANDEM_TRY(CheckHandshake(options, address, *tls));
  Socket epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.open()) return Fail(ErrorCode::kInternal, "epoll_create1 failed: errno {}", errno);
  return std::unique_ptr<HttpTransport>(
      new HttpTransport(options, std::move(requests), clock, std::move(epoll), address, std::move(tls)));
}

HttpTransport::HttpTransport(HttpTransportOptions options, std::vector<HttpRequest> requests, const Clock& clock,
                             Socket epoll, SocketAddress address, std::unique_ptr<TlsClient> tls)
    : options_(std::move(options)),
      requests_(std::move(requests)),
      clock_(clock),
      epoll_(std::move(epoll)),
      address_(address),
      tls_(std::move(tls)),
      scratch_(kScratchBytes) {}

HttpTransport::~HttpTransport() = default;

void HttpTransport::OpenConnections(std::size_t count) {
  while (open_connections_ < std::min(count, options_.max_connections)) {
    const std::int32_t index = OpenConnection();
    if (index < 0) return;
    idle_.push_back({index, connections_[static_cast<std::size_t>(index)].serial});
  }
}

void HttpTransport::Send(std::size_t request, MonotonicTime scheduled) {
  const std::int32_t index = TakeSlot();
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  slot.record = RequestRecord{.request = request, .scheduled = scheduled, .submitted = clock_.Now()};
  slot.serial = ++next_serial_;
  slot.retried = false;
  ++outstanding_;
  deadlines_.push_back({slot.record.submitted + options_.request_timeout, slot.serial, index});
  Dispatch(index);
}

void HttpTransport::Poll(MonotonicTime until, std::vector<RequestRecord>& finished) {
  const MonotonicTime now = clock_.Now();
  ExpireTimeouts(now);
  MonotonicTime wake = finished_.empty() ? until : now;
  if (!deadlines_.empty()) wake = std::min(wake, deadlines_.front().at);
  std::array<epoll_event, kEventsPerPoll> events;
  const int count = WaitForEvents(epoll_.fd(), events, wake - now);
  for (int i = 0; i < count; ++i) {
    HandleEvent(events[static_cast<std::size_t>(i)].data.u64, events[static_cast<std::size_t>(i)].events);
  }
  std::ranges::move(finished_, std::back_inserter(finished));
  finished_.clear();
}

std::int32_t HttpTransport::TakeSlot() {
  if (!free_slots_.empty()) {
    const std::int32_t index = free_slots_.back();
    free_slots_.pop_back();
    return index;
  }
  slots_.emplace_back();
  return static_cast<std::int32_t>(slots_.size() - 1);
}

void HttpTransport::Finish(std::int32_t index, TransportOutcome outcome, MonotonicTime now) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  slot.record.outcome = outcome;
  slot.record.done = now;
  finished_.push_back(std::move(slot.record));
  slot.serial = 0;
  slot.connection = -1;
  free_slots_.push_back(index);
  --outstanding_;
}

void HttpTransport::Dispatch(std::int32_t slot) {
  std::int32_t connection = TakeIdle();
  if (connection < 0 && open_connections_ < options_.max_connections) connection = OpenConnection();
  if (connection >= 0) {
    Start(connection, slot);
  } else if (open_connections_ > 0) {
    // At the bound, or out of descriptors or ports: one of the open connections will take it.
    slots_[static_cast<std::size_t>(slot)].record.queued = true;
    queue_.push_back({slot, slots_[static_cast<std::size_t>(slot)].serial});
  } else {
    Finish(slot, TransportOutcome::kConnectFailed, clock_.Now());
  }
}

std::int32_t HttpTransport::TakeIdle() {
  while (!idle_.empty()) {
    const IdleEntry entry = idle_.back();
    idle_.pop_back();
    const Entry& connection = connections_[static_cast<std::size_t>(entry.connection)];
    if (connection.connection && connection.serial == entry.serial) return entry.connection;
  }
  return -1;
}

std::int32_t HttpTransport::OpenConnection() {
  auto socket = StartConnect(address_);
  if (!socket) return -1;
  TlsSession session;
  if (tls_) {
    session = tls_->MakeSession(socket->fd());
    if (!session) return -1;
  }
  std::int32_t index = 0;
  if (!free_connections_.empty()) {
    index = free_connections_.back();
    free_connections_.pop_back();
  } else {
    connections_.emplace_back();
    index = static_cast<std::int32_t>(connections_.size() - 1);
  }
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  entry.connection = std::make_unique<HttpConnection>(ByteStream(std::move(*socket), std::move(session)));
  entry.serial = ++next_connection_serial_;
  entry.slot = -1;
  ++open_connections_;
  Watch(index, true, EPOLL_CTL_ADD);
  return index;
}

void HttpTransport::CloseConnection(std::int32_t index) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  entry.connection.reset();
  entry.slot = -1;
  free_connections_.push_back(index);
  --open_connections_;
}

void HttpTransport::Watch(std::int32_t index, bool write, int operation) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  entry.wants_write = write;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (write ? EPOLLOUT : 0U);
  event.data.u64 = EventData(index, entry.serial);
  epoll_ctl(epoll_.fd(), operation, entry.connection->fd(), &event);
}

void HttpTransport::Start(std::int32_t index, std::int32_t slot) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  entry.slot = slot;
  slots_[static_cast<std::size_t>(slot)].connection = index;
  entry.connection->Begin(requests_[slots_[static_cast<std::size_t>(slot)].record.request]);
  if (entry.connection->ready()) Write(index);
}

void HttpTransport::Write(std::int32_t index) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  RequestRecord& record = slots_[static_cast<std::size_t>(entry.slot)].record;
  if (record.sent == MonotonicTime{}) record.sent = clock_.Now();
  // A lost connection is left to its read event: the server may have answered before it closed.
  (void)entry.connection->Flush();
  Rewatch(index);
}

void HttpTransport::Rewatch(std::int32_t index) {
  const Entry& entry = connections_[static_cast<std::size_t>(index)];
  const bool write = entry.connection->wants_write();
  if (write != entry.wants_write) Watch(index, write, EPOLL_CTL_MOD);
}

void HttpTransport::HandleEvent(std::uint64_t data, std::uint32_t events) {
  const auto index = static_cast<std::int32_t>(data & 0xffffffffU);
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  // The connection of an earlier event in this batch may have made way for another.
  if (!entry.connection || entry.serial != static_cast<std::uint32_t>(data >> 32)) return;
  if (!entry.connection->ready()) return Connect(index, events);
  // Under TLS either may have to wait for the other: every event is a chance for both.
  const bool tls = entry.connection->tls();
  if ((tls || (events & EPOLLOUT) != 0) && entry.slot >= 0) Write(index);
  if (tls || (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) Read(index);
}

void HttpTransport::Connect(std::int32_t index, std::uint32_t events) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  if (entry.connection->connecting() && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
  switch (entry.connection->FinishConnect()) {
    case HttpConnection::ConnectResult::kFailed: return Lost(index);
    case HttpConnection::ConnectResult::kBlocked: return Rewatch(index);
    case HttpConnection::ConnectResult::kReady: break;
  }
  if (entry.slot >= 0) {
    Write(index);
  } else {
    Rewatch(index);
  }
}

void HttpTransport::Read(std::int32_t index) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  const bool had_bytes = entry.connection->reader().started();
  const HttpConnection::ReadResult result = entry.connection->Receive(scratch_);
  const MonotonicTime now = clock_.Now();
  if (entry.slot >= 0 && !had_bytes && entry.connection->reader().started()) {
    slots_[static_cast<std::size_t>(entry.slot)].record.first_byte = now;
  }
  switch (result) {
    case HttpConnection::ReadResult::kMore: Rewatch(index); break;
    case HttpConnection::ReadResult::kAnswered: Answered(index, now); break;
    case HttpConnection::ReadResult::kLost: Lost(index); break;
    case HttpConnection::ReadResult::kMalformed:
      Finish(entry.slot, TransportOutcome::kMalformed, now);
      CloseConnection(index);
      ServeQueue();
      break;
  }
}

void HttpTransport::Answered(std::int32_t index, MonotonicTime now) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  HttpResponseReader& reader = entry.connection->reader();
  RequestRecord& record = slots_[static_cast<std::size_t>(entry.slot)].record;
  record.status = reader.status();
  record.bytes = reader.body_bytes();
  record.body = std::move(reader.body());
  Finish(std::exchange(entry.slot, -1), TransportOutcome::kAnswered, now);
  if (!entry.connection->reusable()) {
    CloseConnection(index);
  } else {
    entry.connection->Finish();
    idle_.push_back({index, entry.serial});
  }
  ServeQueue();
}

void HttpTransport::Lost(std::int32_t index) {
  Entry& entry = connections_[static_cast<std::size_t>(index)];
  const std::int32_t slot = std::exchange(entry.slot, -1);
  const bool never_connected = !entry.connection->ready();
  const bool may_retry = entry.connection->reused() && !entry.connection->reader().started();
  CloseConnection(index);
  if (slot >= 0) {
    Slot& lost = slots_[static_cast<std::size_t>(slot)];
    lost.connection = -1;
    if (may_retry && !lost.retried) {
      lost.retried = true;
      queue_.push_front({slot, lost.serial});
    } else {
      Finish(slot, never_connected ? TransportOutcome::kConnectFailed : TransportOutcome::kConnectionLost,
             clock_.Now());
    }
  }
  ServeQueue();
}

void HttpTransport::ServeQueue() {
  while (!queue_.empty()) {
    const QueueEntry next = queue_.front();
    if (slots_[static_cast<std::size_t>(next.slot)].serial != next.serial) {
      queue_.pop_front();
      continue;
    }
    std::int32_t connection = TakeIdle();
    if (connection < 0 && open_connections_ < options_.max_connections) connection = OpenConnection();
    if (connection < 0 && open_connections_ > 0) return;
    queue_.pop_front();
    if (connection >= 0) {
      Start(connection, next.slot);
    } else {
      Finish(next.slot, TransportOutcome::kConnectFailed, clock_.Now());
    }
  }
}

void HttpTransport::ExpireTimeouts(MonotonicTime now) {
  while (!deadlines_.empty()) {
    const Deadline deadline = deadlines_.front();
    const Slot& slot = slots_[static_cast<std::size_t>(deadline.slot)];
    if (slot.serial == deadline.serial) {
      if (deadline.at > now) break;
      // An answer that still comes would be taken for that of the next request: the connection has to go.
      if (slot.connection >= 0) CloseConnection(slot.connection);
      Finish(deadline.slot, TransportOutcome::kTimedOut, now);
    }
    deadlines_.pop_front();
  }
  ServeQueue();
}

}  // namespace tandem::loadgen
