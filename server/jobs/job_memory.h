#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/jobs/job_need.h"
#include "server/jobs/job_options.h"
#include "server/jobs/job_record.h"

namespace tandem {
enum class SessionId : std::uint64_t;
}

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
  // Its trainer has gone through what it will do, and expects to take that.
  void Expect(JobId job, const JobNeed& need);
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
    bool admitted = false;
    bool paused = false;
  };

  // Is promised that from now on.
  void Promised(Promise& promise, const JobNeed& need) const;
  // As an earlier trainer has noted it, else a guess; what its trainer cannot read the trainer is to complain of.
  [[nodiscard]] JobNeed NeedOf(const JobRecord& record) const;

  // Constant after construction.
  const JobOptions& options_;

  std::map<JobId, Promise> promised_;
  std::deque<JobId> offered_;  // Where nobody counts memory.
};

}  // namespace tandem::jobs
