#include "server/http/direct_send.h"

#include <utility>

#include <sys/socket.h>

namespace tandem::http {

void DirectSend::Allow(int fd, const Delivery& delivery) {
  MutexLock lock(mu_);
  fd_ = fd;
  delivery_ = delivery;
  date_ = delivery.date;
  delivery_.date = date_;
}

bool DirectSend::Forbid() {
  MutexLock lock(mu_);
  fd_ = -1;
  return !sent_;
}

std::optional<DirectSend::Sent> DirectSend::TakeSent() {
  MutexLock lock(mu_);
  begun_.store(false, std::memory_order_relaxed);
  return std::exchange(sent_, std::nullopt);
}

bool DirectSend::Send(const Response& response) {
  if (response.content_size() > kCopyLimit) return false;
  MutexLock lock(mu_);
  if (fd_ < 0) return false;
  std::string text;
  AppendWhole(response, delivery_, text);
  begun_.store(true, std::memory_order_release);
  // Under the lock, which keeps the socket from being closed; it does not block. The loop sees for itself what is wrong
  // with a socket that takes nothing.
  const ssize_t sent = ::send(std::exchange(fd_, -1), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  const std::size_t bytes = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  text.erase(0, bytes);
  sent_ = Sent{.bytes = bytes, .rest = std::move(text)};
  return true;
}

}  // namespace tandem::http
