#include "tests/loadgen/scripted_server.h"

#include <algorithm>
#include <format>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::loadgen {
namespace {

// The next request from `pending` and the socket; nothing when the client has gone.
std::optional<std::string> ReadRequest(int fd, std::string& pending) {
  while (true) {
    const std::size_t end = pending.find("\r\n\r\n");
    if (end != std::string::npos) {
      std::size_t length = 0;
      const std::size_t at = pending.find("Content-Length: ");
      if (at < end) length = std::stoul(pending.substr(at + 16));
      if (pending.size() >= end + 4 + length) {
        std::string request = pending.substr(0, end + 4 + length);
        pending.erase(0, end + 4 + length);
        return request;
      }
    }
    char buffer[65536];
    const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got <= 0) return std::nullopt;
    pending.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

ScriptedReply ScriptedReply::Ok(const std::string& body) {
  return {.bytes = std::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)};
}

ScriptedServer::ScriptedServer(Script script, bool ipv6) : script_(std::move(script)) {
  listener_ = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  auto* address = ipv6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = ipv6 ? sizeof v6 : sizeof v4;
  if (listener_ < 0 || bind(listener_, address, size) != 0 || listen(listener_, 1024) != 0) return;
  getsockname(listener_, address, &size);
  port_ = ntohs(ipv6 ? v6.sin6_port : v4.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedServer::~ScriptedServer() {
  std::list<std::thread> threads;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
    released_.NotifyAll();
  }
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  {
    MutexLock lock(mu_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  if (listener_ >= 0) close(listener_);
}

void ScriptedServer::Hold() {
  MutexLock lock(mu_);
  held_ = true;
}

void ScriptedServer::Release() {
  MutexLock lock(mu_);
  held_ = false;
  released_.NotifyAll();
}

void ScriptedServer::WaitUntilReleased() {
  MutexLock lock(mu_);
  while (held_ && !stopping_) released_.Wait(mu_);
}

void ScriptedServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    MutexLock lock(mu_);
    if (stopping_) {
      close(fd);
      return;
    }
    ++connections_;
    sockets_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedServer::Serve(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::string pending;
  while (const auto request = ReadRequest(fd, pending)) {
    const int now = ++at_once_;
    int most = most_at_once_.load();
    while (now > most && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    WaitUntilReleased();
    const ScriptedReply reply = script_(requests_++, *request);
    --at_once_;
    std::size_t sent = 0;
    while (sent < reply.bytes.size()) {
      const ssize_t n = send(fd, reply.bytes.data() + sent, reply.bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    if (reply.close) break;
  }
  MutexLock lock(mu_);
  std::erase(sockets_, fd);
  close(fd);
}

}  // namespace tandem::loadgen
