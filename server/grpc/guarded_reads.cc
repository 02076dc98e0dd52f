#include "server/grpc/guarded_reads.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <unordered_map>

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/base/mutex.h"
#include "server/grpc/header_guard.h"

namespace tandem::grpc_front {
namespace {

ino_t InodeOf(int fd) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// The guards of sockets in plain text. Thread-safe. One for the process, as its descriptors are.
class SocketGuards {
 public:
  static SocketGuards& Instance() {
    // Never destroyed: gRPC's threads may read until the process ends.
    static auto* const guards = new SocketGuards();
    return *guards;
  }

  void Add(int fd) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    guards_.insert_or_assign(fd, Guarded{.inode = InodeOf(fd), .guard = {}});
    any_.store(true, std::memory_order_release);
  }

  // `got` bytes were read into the message's buffers.
  [[nodiscard]] bool Follow(int fd, const msghdr& message, std::size_t got) EXCLUDES(mu_) {
    if (!any_.load(std::memory_order_acquire)) return true;
    const MutexLock lock(mu_);
    const auto found = guards_.find(fd);
    if (found == guards_.end()) return true;
    // gRPC closes a socket without telling, and its number may be another's by now.
    if (found->second.inode != InodeOf(fd)) {
      guards_.erase(found);
      return true;
    }
    for (const iovec& piece : std::span(message.msg_iov, message.msg_iovlen)) {
      const std::size_t size = std::min(piece.iov_len, got);
      if (!found->second.guard.Follow({static_cast<const std::byte*>(piece.iov_base), size})) return false;
      got -= size;
    }
    return true;
  }

 private:
  struct Guarded {
    ino_t inode = 0;
    HeaderGuard guard;
  };

  std::atomic<bool> any_{false};
  Mutex mu_;
  std::unordered_map<int, Guarded> guards_ GUARDED_BY(mu_);  // By descriptor.
};

void FreeGuard(void*, void* guard, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<HeaderGuard*>(guard);
}

bool SpeaksHttp2AsServer(SSL* session) {
  if (SSL_is_server(session) == 0) return false;
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(session, &name, &size);
  return std::string_view(reinterpret_cast<const char*>(name), size) == "h2";
}

// The guard of a session, which owns it; null when there is no memory for one.
HeaderGuard* GuardOf(SSL* session) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeGuard);
  auto* guard = static_cast<HeaderGuard*>(SSL_get_ex_data(session, index));
  if (guard != nullptr) return guard;
  guard = new (std::nothrow) HeaderGuard();
  if (guard == nullptr || SSL_set_ex_data(session, index, guard) == 1) return guard;
  delete guard;
  return nullptr;
}

}  // namespace

void GuardReads(int fd) {
  SocketGuards::Instance().Add(fd);
}

}  // namespace tandem::grpc_front

extern "C" {

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  const ssize_t got = ::syscall(SYS_recvmsg, fd, message, flags);
  if (got <= 0) return got;
  if (tandem::grpc_front::SocketGuards::Instance().Follow(fd, *message, static_cast<std::size_t>(got))) return got;
  // What the client has sent beyond this goes at once, too.
  ::shutdown(fd, SHUT_RDWR);
  errno = ECONNRESET;
  return -1;
}

int SSL_read(SSL* ssl, void* buf, int num) {
  std::size_t got = 0;
  if (num < 0 || SSL_read_ex(ssl, buf, static_cast<std::size_t>(num), &got) != 1) {
    return (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0 ? 0 : -1;
  }
  if (tandem::grpc_front::SpeaksHttp2AsServer(ssl)) {
    auto* const guard = tandem::grpc_front::GuardOf(ssl);
    if (guard == nullptr || !guard->Follow({static_cast<const std::byte*>(buf), got})) return -1;
  }
  return static_cast<int>(got);
}

}  // extern "C"
