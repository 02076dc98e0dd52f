#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "memory/memory_book.h"
#include "server/jobs/job_need.h"
#include "server/jobs/job_options.h"
#include "server/jobs/job_record.h"

namespace tandem::jobs {

// Which of the jobs that are due may begin, by the machine's memory. Without an account (JobOptions::memory) all may,
// in the order in which they are offered. One thread (the jobs thread).
class JobMemory {
 public:
  explicit JobMemory(const JobOptions& options) : options_(options) {}
  // Gives back what is promised to jobs; they are asked for again when a server comes back.
  ~JobMemory();
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;

  // These are due, the first to begin first; others that waited wait no more. To tell what a job needs its model is
  // read, so no more than kMostRead that were not offered before are looked at. False: there are more, to be offered
  // again.
  static constexpr int kMostRead = 32;
  [[nodiscard]] bool Offer(std::span<const JobRecord> due);
  // The next of those who may begin; it has its memory. nullopt: nobody may now.
  [[nodiscard]] std::optional<JobId> Next();
  // It has ended, or waits no more; nothing for a job that has nothing.
  void Leave(JobId job);

  // It is held by a person, and does not end by itself; or goes on.
  void SetPaused(JobId job, bool paused);
  // Where its E is; nullopt where nobody counts, or it has none.
  [[nodiscard]] std::optional<MemoryBook::Place> LaneOf(JobId job) const;
  // Gives it more in its lane, where there is room, and tells how much it has. Any thread; as long as the account
  // lives.
  [[nodiscard]] std::function<std::uint64_t(std::uint64_t needed)> GrowthOf(JobId job) const;
  // Bytes that it has; 0 where nobody counts.
  [[nodiscard]] std::uint64_t Promised(JobId job) const;
  // Its trainer has gone through what it will do, and expects to take that. False: there is no room for it now; it is
  // to wait until there is.
  [[nodiscard]] bool Expect(JobId job, const JobNeed& need);
  // What a trainer of a job that is to fit into what is free may take; nullopt for a job with a bound of its own, for
  // others, and where nobody counts memory.
  [[nodiscard]] std::optional<std::uint64_t> BoundOf(JobId job) const;
  // Its trainer holds so much now, and held so much at most.
  void Watch(JobId job, std::uint64_t resident, std::uint64_t peak, bool settled);

  // In words why a job waits that was offered; empty when memory is not the reason. `in_detail`, which takes longer,
  // also whose end would be enough.
  [[nodiscard]] std::string WhyWaiting(JobId job, bool in_detail = true) const;
  // kTooLarge for a job that would wait for ever.
  [[nodiscard]] Status CheckEverFits(const TrainingJob& job, const std::filesystem::path& model) const;

  // -1: none. Readable when somebody may begin who could not before, until TakeNews().
  [[nodiscard]] int news_fd() const;
  // Whether that is so, or it was never asked.
  [[nodiscard]] bool TakeNews();

 private:
  struct Promise {
    SessionId session{};
    JobNeed need;
    // Of one that is to fit into what is free, and is held to that: how much it asks for follows from both.
    std::optional<JobNeed> guess = std::nullopt;
    bool noted = false;  // By an earlier trainer: what this one expects may be more, but not less.
    bool admitted = false;
    bool paused = false;

    // As the book has it.
    [[nodiscard]] SessionNeed Session() const;
  };

  // Is promised that from now on.
  void SetPromised(Promise& promise, const JobNeed& need) const;
  // As an earlier trainer has noted it, else a guess; what its trainer cannot read the trainer is to complain of.
  [[nodiscard]] Promise PromiseFor(const JobRecord& record) const;

  // Constant after construction.
  const JobOptions& options_;

  std::map<JobId, Promise> promised_;
  std::deque<JobId> offered_;  // Where nobody counts memory.
};

}  // namespace tandem::jobs
