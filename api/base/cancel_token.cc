#include "api/base/cancel_token.h"

#include <utility>

namespace tandem {

CancelToken::Registration::Registration(Registration&& other) noexcept
    : token_(std::exchange(other.token_, nullptr)), entry_(other.entry_) {}

CancelToken::Registration& CancelToken::Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    Release();
    token_ = std::exchange(other.token_, nullptr);
    entry_ = other.entry_;
  }
  return *this;
}

CancelToken::Registration::~Registration() {
  Release();
}

void CancelToken::Registration::Release() {
  if (token_ == nullptr) return;
  MutexLock lock(token_->mu_);
  token_->callbacks_.erase(entry_);
  token_ = nullptr;
}

void CancelToken::Cancel() {
  MutexLock lock(mu_);
  if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
  for (auto& callback : callbacks_) callback();
}

CancelToken::Registration CancelToken::OnCancel(std::function<void()> callback) {
  MutexLock lock(mu_);
  if (cancelled_.load(std::memory_order_relaxed)) callback();
  callbacks_.push_back(std::move(callback));
  return Registration(this, std::prev(callbacks_.end()));
}

}  // namespace tandem
