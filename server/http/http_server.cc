#include "server/http/http_server.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace tandem::http {
namespace {

// A write to a client that has gone is an error to be returned, not the end of the process. OpenSSL's writes cannot be
// told so one by one.
void IgnoreBrokenPipes() {
  struct sigaction current{};
  if (::sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

// Connections must not eat the descriptors that models and logs need.
std::size_t ConnectionLimit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const auto files = static_cast<std::size_t>(limit.rlim_cur);
  const std::size_t reserve = std::max<std::size_t>(files / 8, std::min<std::size_t>(64, files / 2));
  return std::max<std::size_t>(1, std::min(wanted, files - reserve));
}

// Costs one read and one write: what the client has sent is read so that closing does not reset the answer away.
void TurnAway(const UniqueFd& fd, bool tls) {
  if (tls) return;
  std::array<char, 4096> unread;
  (void)::recv(fd.get(), unread.data(), unread.size(), MSG_DONTWAIT);
  std::string text;
  const Response response = ErrorResponse(503, "the server has no room for another connection");
  AppendHead(response, {.keep_alive = false}, text);
  text += response.body;
  (void)::send(fd.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(fd.get(), SHUT_WR);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Start(ServerOptions options, Handler handler) {
  IgnoreBrokenPipes();
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->core_ = std::make_unique<ServerCore>();
  ServerCore& core = *server->core_;
  if (options.tls) {
    TANDEM_ASSIGN(core.tls, TlsContext::Create(*options.tls));
  }
  TANDEM_ASSIGN(server->listener_, Listener::Bind(options.address, options.port));
  server->port_ = server->listener_->port();

  options.max_connections = ConnectionLimit(options.max_connections);
  core.budget = std::make_shared<ByteBudget>(options.max_body_total);
  core.answers = std::make_shared<ByteBudget>(options.max_answer_total);
  core.handler = std::move(handler);
  core.options = std::move(options);
  server->loops_ = core.options.loops ? core.options.loops
                                      : std::make_shared<IoLoops>(core.options.io_threads, core.options.poll_window);
  for (std::size_t i = 0; i < server->loops_->size(); ++i) {
    const std::shared_ptr<IoLoop>& loop = server->loops_->at(i);
    server->shards_.push_back(std::make_unique<Shard>(core, loop));
    loop->Run([shard = server->shards_.back().get()] { shard->Start(); });
  }
  IoLoop& first = *server->loops_->at(0);
  first.Run(
      [&, raw = server.get()] { raw->listener_->Start(first, [raw](UniqueFd fd) { raw->OnAccept(std::move(fd)); }); });
  return server;
}

HttpServer::~HttpServer() {
  Stop();
}

void HttpServer::OnAccept(UniqueFd fd) {
  if (core_->connections.load(std::memory_order_relaxed) >= core_->options.max_connections) {
    TurnAway(fd, core_->tls != nullptr);
    return;
  }
  core_->connections.fetch_add(1, std::memory_order_relaxed);
  const std::size_t i = next_shard_++ % shards_.size();
  if (i == 0) {
    shards_[0]->Adopt(std::move(fd));
    return;
  }
  loops_->at(i)->Post([shard = shards_[i].get(), fd = std::move(fd)]() mutable { shard->Adopt(std::move(fd)); });
}

void HttpServer::StopAccepting() {
  if (!listener_ || stopped_) return;
  loops_->at(0)->Run([this] { listener_->Stop(); });
}

bool HttpServer::Drain(std::chrono::milliseconds patience) {
  if (stopped_) return true;
  StopAccepting();
  core_->draining.store(true, std::memory_order_relaxed);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    loops_->at(i)->Run([shard = shards_[i].get()] { shard->Drain(); });
  }
  const MonotonicTime deadline = core_->options.clock->Now() + patience;
  MutexLock lock(core_->mu);
  while (connections() > 0) {
    if (core_->options.clock->Now() >= deadline) return false;
    // Bounded, because a connection may close between the look at the count and the wait.
    core_->fewer.WaitFor(core_->mu, std::chrono::milliseconds(20));
  }
  return true;
}

void HttpServer::Stop() {
  if (stopped_ || !listener_) return;
  StopAccepting();
  stopped_ = true;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    loops_->at(i)->Run([shard = shards_[i].get()] { shard->Stop(); });
    // A closed connection dies in a task of its own, which must have run before its shard goes.
    loops_->at(i)->Run([] {});
  }
}

}  // namespace tandem::http
