#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "memory/memory_book.h"

namespace tandem {

// The MemoryBook of this machine, for all who have memory or ask for it: the repository for its models, the supervisor
// of training jobs, whoever shows it. Thread-safe; calls out to nobody. Shared, as a version that is served may outlive
// all else.
class MemoryAccount {
 public:
  // kUnavailable: there is no descriptor left.
  [[nodiscard]] static Result<std::shared_ptr<MemoryAccount>> Create(const DeviceBudget& budget, int workers);
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // As the MemoryBook has them.
  SessionId Count(MemoryKind kind, std::string name, const SessionNeed& need) EXCLUDES(mu_);
  void Recount(SessionId session, const SessionNeed& need) EXCLUDES(mu_);
  void Measure(SessionId session, std::uint64_t bytes) EXCLUDES(mu_);
  SessionId Ask(std::string name, const SessionNeed& need, std::int64_t rank) EXCLUDES(mu_);
  [[nodiscard]] std::optional<SessionId> AdmitNext() EXCLUDES(mu_);
  void Leave(SessionId session) EXCLUDES(mu_);
  [[nodiscard]] Status CheckEverFits(const SessionNeed& need) const EXCLUDES(mu_);
  [[nodiscard]] std::string WhyWaiting(SessionId session, MemoryBook::Detail detail) const EXCLUDES(mu_);
  [[nodiscard]] bool Expect(SessionId session, const SessionNeed& need) EXCLUDES(mu_);
  [[nodiscard]] std::uint64_t Grow(SessionId session, std::uint64_t ephemeral) EXCLUDES(mu_);
  [[nodiscard]] std::optional<MemoryBook::Place> PlaceOf(SessionId session) const EXCLUDES(mu_);
  void SetBudget(const DeviceBudget& budget) EXCLUDES(mu_);
  [[nodiscard]] MemoryMap Map() const EXCLUDES(mu_);

  // Readable from when something changed by which somebody who waits may get what he needs, until TakeNews(). For one
  // reader.
  [[nodiscard]] int news_fd() const { return news_; }
  // Whether there was anything.
  [[nodiscard]] bool TakeNews();

 private:
  MemoryAccount(const DeviceBudget& budget, int workers, int news) : news_(news), book_(budget, workers) {}
  void TellNews() const;

  const int news_;  // Owned.
  mutable Mutex mu_;
  MemoryBook book_ GUARDED_BY(mu_);
};

// What has memory as long as this object lives.
class CountedMemory {
 public:
  CountedMemory(std::shared_ptr<MemoryAccount> account, MemoryKind kind, std::string name, const SessionNeed& need)
      : account_(std::move(account)), session_(account_->Count(kind, std::move(name), need)) {}
  ~CountedMemory() { account_->Leave(session_); }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  void Measure(std::uint64_t bytes) { account_->Measure(session_, bytes); }
  void Recount(const SessionNeed& need) { account_->Recount(session_, need); }

 private:
  const std::shared_ptr<MemoryAccount> account_;  // Shared with all others.
  const SessionId session_;
};

}  // namespace tandem
