#include "server/memory/memory_account.h"

#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace tandem {

Result<std::shared_ptr<MemoryAccount>> MemoryAccount::Create(const DeviceBudget& budget, int workers) {
  const int news = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (news < 0) return Fail(ErrorCode::kUnavailable, "no event descriptor for the memory account can be had");
  return std::shared_ptr<MemoryAccount>(new MemoryAccount(budget, workers, news));
}

MemoryAccount::~MemoryAccount() {
  ::close(news_);
}

void MemoryAccount::TellNews() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(news_, &one, sizeof one);
}

bool MemoryAccount::TakeNews() {
  std::uint64_t count = 0;
  return ::read(news_, &count, sizeof count) == sizeof count;
}

SessionId MemoryAccount::Count(MemoryKind kind, std::string name, const SessionNeed& need) {
  const MutexLock lock(mu_);
  return book_.Count(kind, std::move(name), need);
}

void MemoryAccount::Recount(SessionId session, const SessionNeed& need) {
  {
    const MutexLock lock(mu_);
    book_.Recount(session, need);
  }
  TellNews();
}

void MemoryAccount::Measure(SessionId session, std::uint64_t bytes) {
  const MutexLock lock(mu_);
  book_.Measure(session, bytes);
}

SessionId MemoryAccount::Ask(std::string name, const SessionNeed& need, std::int64_t rank) {
  const MutexLock lock(mu_);
  return book_.Ask(std::move(name), need, rank);
}

std::optional<SessionId> MemoryAccount::AdmitNext() {
  const MutexLock lock(mu_);
  return book_.AdmitNext();
}

void MemoryAccount::Leave(SessionId session) {
  {
    const MutexLock lock(mu_);
    book_.Leave(session);
  }
  TellNews();
}

Status MemoryAccount::CheckEverFits(const SessionNeed& need) const {
  const MutexLock lock(mu_);
  return book_.CheckEverFits(need);
}

std::string MemoryAccount::WhyWaiting(SessionId session, MemoryBook::Detail detail) const {
  const MutexLock lock(mu_);
  return book_.WhyWaiting(session, detail);
}

bool MemoryAccount::Expect(SessionId session, const SessionNeed& need) {
  bool fits = false;
  {
    const MutexLock lock(mu_);
    fits = book_.Expect(session, need);
  }
  if (fits) TellNews();
  return fits;
}

std::uint64_t MemoryAccount::Grow(SessionId session, std::uint64_t ephemeral) {
  const MutexLock lock(mu_);
  return book_.Grow(session, ephemeral);
}

std::optional<MemoryBook::Place> MemoryAccount::PlaceOf(SessionId session) const {
  const MutexLock lock(mu_);
  return book_.PlaceOf(session);
}

void MemoryAccount::SetBudget(const DeviceBudget& budget) {
  {
    const MutexLock lock(mu_);
    book_.SetBudget(budget);
  }
  TellNews();
}

MemoryMap MemoryAccount::Map() const {
  const MutexLock lock(mu_);
  return book_.Map();
}

}  // namespace tandem
