#include "server/http/shard.h"

#include <chrono>
#include <new>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <trantor/net/EventLoop.h>

#include "api/base/format.h"

namespace tandem::http {

Shard::Shard(ServerCore& core, std::shared_ptr<IoLoop> loop) : core_(core), loop_(std::move(loop)) {}

Shard::~Shard() = default;

void Shard::Start() {
  const std::chrono::duration<double> tick = core_.options.timeouts.tick;
  timer_ = loop_->events().runEvery(tick, [this] { Tick(); });
  Tick();
}

void Shard::Adopt(UniqueFd fd) {
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  try {
    std::unique_ptr<Stream> stream = core_.tls ? core_.tls->MakeStream(std::move(fd)) : MakePlainStream(std::move(fd));
    if (!stream) throw std::bad_alloc();
    connections_.push_front(std::make_shared<Connection>(*this, std::move(stream)));
  } catch (const std::bad_alloc&) {
    core_.connections.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  connections_.front()->place = connections_.begin();
  connections_.front()->Open();
}

void Shard::Remove(Connection& connection) {
  // The poller's list of this turn may still name the connection; it dies when the turn is over.
  loop_->Post([last = *connection.place] {});
  connections_.erase(connection.place);
  core_.connections.fetch_sub(1, std::memory_order_relaxed);
  if (core_.draining.load(std::memory_order_relaxed)) {
    MutexLock lock(core_.mu);
    core_.fewer.NotifyAll();
  }
}

void Shard::Tick() {
  const auto wall = std::chrono::floor<std::chrono::seconds>(core_.options.clock->WallNow());
  date_ = Format("{:%a, %d %b %Y %H:%M:%S} GMT", wall);
  const MonotonicTime now = Now();
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& connection = **it++;
    connection.Expire(now);
  }
}

void Shard::Drain() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& connection = **it++;
    connection.Drain();
  }
}

void Shard::Stop() {
  loop_->events().invalidateTimer(timer_);
  while (!connections_.empty()) connections_.front()->Close();
}

}  // namespace tandem::http
