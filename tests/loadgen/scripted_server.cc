#include "tests/loadgen/scripted_server.h"

#include <algorithm>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

std::shared_ptr<SSL_CTX> MakeContext(const ScriptedTls& options) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str());
  SSL_CTX_use_PrivateKey_file(context.get(), options.key.c_str(), SSL_FILETYPE_PEM);
  if (options.version != 0) {
    SSL_CTX_set_min_proto_version(context.get(), options.version);
    SSL_CTX_set_max_proto_version(context.get(), options.version);
  }
  if (!options.client_ca.empty()) {
    SSL_CTX_load_verify_file(context.get(), options.client_ca.c_str());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

}  // namespace

// The blocking bytes of one connection, whose socket is somebody else's.
class ScriptedServer::Peer {
 public:
  Peer(int fd, SSL_CTX* tls) : fd_(fd) {
    if (tls == nullptr) return;
    ssl_.reset(SSL_new(tls), SSL_free);
    SSL_set_fd(ssl_.get(), fd);
  }

  [[nodiscard]] bool Greet() { return !ssl_ || SSL_accept(ssl_.get()) == 1; }
  void SayGoodBye() {
    if (ssl_) SSL_shutdown(ssl_.get());
  }

  void Send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const char* const rest = bytes.data() + sent;
      const int size = static_cast<int>(std::min<std::size_t>(bytes.size() - sent, 1 << 20));
      const auto n =
          ssl_ ? SSL_write(ssl_.get(), rest, size) : send(fd_, rest, static_cast<std::size_t>(size), MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<std::size_t>(n);
    }
  }

  // The next request; nothing when the client has gone.
  std::optional<std::string> NextRequest() {
    while (true) {
      const std::size_t end = pending_.find("\r\n\r\n");
      if (end != std::string::npos) {
        std::size_t length = 0;
        const std::size_t at = pending_.find("Content-Length: ");
        if (at < end) length = std::stoul(pending_.substr(at + 16));
        if (pending_.size() >= end + 4 + length) {
          std::string request = pending_.substr(0, end + 4 + length);
          pending_.erase(0, end + 4 + length);
          return request;
        }
      }
      char buffer[65536];
      const auto got = ssl_ ? SSL_read(ssl_.get(), buffer, sizeof buffer) : recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) return std::nullopt;
      pending_.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  const int fd_;
  std::shared_ptr<SSL> ssl_;
  std::string pending_;
};

ScriptedReply ScriptedReply::Ok(const std::string& body) {
  return {.bytes = Format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)};
}

ScriptedServer::ScriptedServer(Script script, const ScriptedOptions& options) : script_(std::move(script)) {
  if (options.tls != nullptr) tls_ = MakeContext(*options.tls);
  const bool ipv6 = options.ipv6;
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
  // OpenSSL writes to sockets whose client has gone. Only here: the client under test has to look after itself.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  {
    Peer peer(fd, tls_.get());
    if (peer.Greet()) Answer(peer);
  }
  MutexLock lock(mu_);
  std::erase(sockets_, fd);
  close(fd);
}

void ScriptedServer::Answer(Peer& peer) {
  while (const auto request = peer.NextRequest()) {
    const int now = ++at_once_;
    int most = most_at_once_.load();
    while (now > most && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    WaitUntilReleased();
    const ScriptedReply reply = script_(requests_++, *request);
    --at_once_;
    peer.Send(reply.bytes);
    if (reply.abrupt) return;
    if (reply.close) break;
  }
  peer.SayGoodBye();
}

}  // namespace tandem::loadgen
