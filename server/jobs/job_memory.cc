#include "server/jobs/job_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/wire/training_job_json.h"
#include "server/jobs/job_folder.h"
#include "server/memory/memory_account.h"

namespace tandem::jobs {
namespace {

SessionNeed SessionOf(const JobNeed& need, bool paused, bool fits) {
  // What is bounded is the process as a whole: what it has in a lane would be counted against it.
  const bool alone = need.bounded || fits;
  return {.persistent = need.persistent, .ephemeral = need.ephemeral, .stays = paused, .alone = alone};
}

}  // namespace

SessionNeed JobMemory::Promise::Session() const {
  return SessionOf(need, paused, guess.has_value());
}

JobMemory::~JobMemory() {
  for (const auto& [job, promise] : promised_) options_.memory->Leave(promise.session);
}

JobMemory::Promise JobMemory::PromiseFor(const JobRecord& record) const {
  const auto job = ParseTrainingJob(record.spec);
  if (!job) return {.need = GuessNeed({}, {})};
  const bool fits = job->fit && !job->memory;
  const auto noted = NeedAsNoted(record.memory);
  if (noted && !job->memory && !fits) return {.need = *noted, .noted = true};
  const auto told = options_.need(*job, JobFolder::Of(options_.state, record.id).source_model());
  const JobNeed need = told ? *told : GuessNeed(*job, {});
  if (!fits) return {.need = need};
  return {.need = NeedWithin(need, options_.memory->Map().free), .guess = need};
}

bool JobMemory::Offer(std::span<const JobRecord> due) {
  if (options_.memory == nullptr) {
    offered_.clear();
    for (const JobRecord& record : due) offered_.push_back(record.id);
    return true;
  }
  std::vector<JobId> gone;
  for (const auto& [job, promise] : promised_) {
    if (!promise.admitted && !std::ranges::contains(due, job, &JobRecord::id)) gone.push_back(job);
  }
  for (const JobId job : gone) Leave(job);
  for (auto& [job, promise] : promised_) {
    // What is free has changed since it asked.
    if (!promise.admitted && promise.guess) {
      SetPromised(promise, NeedWithin(*promise.guess, options_.memory->Map().free));
    }
  }
  int read = 0;
  for (const JobRecord& record : due) {
    if (promised_.contains(record.id)) continue;
    if (++read > kMostRead) return false;
    Promise promise = PromiseFor(record);
    promise.session =
        options_.memory->Ask(Format("job {}", record.id), promise.Session(), -std::int64_t{record.priority});
    promised_.emplace(record.id, promise);
  }
  return true;
}

std::optional<JobId> JobMemory::Next() {
  if (options_.memory == nullptr) {
    if (offered_.empty()) return std::nullopt;
    const JobId first = offered_.front();
    offered_.pop_front();
    return first;
  }
  const auto session = options_.memory->AdmitNext();
  if (!session) return std::nullopt;
  const auto promise = std::ranges::find_if(promised_, [&](const auto& one) { return one.second.session == *session; });
  if (promise == promised_.end()) return std::nullopt;  // Nobody else asks for jobs.
  promise->second.admitted = true;
  return promise->first;
}

void JobMemory::Leave(JobId job) {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return;
  options_.memory->Leave(promise->second.session);
  promised_.erase(promise);
}

void JobMemory::SetPaused(JobId job, bool paused) {
  const auto promise = promised_.find(job);
  if (promise == promised_.end() || std::exchange(promise->second.paused, paused) == paused) return;
  options_.memory->Recount(promise->second.session, promise->second.Session());
}

bool JobMemory::Expect(JobId job, const JobNeed& need) {
  const auto found = promised_.find(job);
  if (found == promised_.end() || found->second.need.bounded) return true;
  Promise& promise = found->second;
  Promise expected = promise;
  expected.need = need;
  if (promise.noted) expected.need.ephemeral = std::max(need.ephemeral, promise.need.ephemeral);
  if (!options_.memory->Expect(promise.session, expected.Session())) return false;
  promise = expected;
  return true;
}

std::optional<MemoryBook::Place> JobMemory::LaneOf(JobId job) const {
  const auto promise = promised_.find(job);
  return promise == promised_.end() ? std::nullopt : options_.memory->PlaceOf(promise->second.session);
}

std::function<std::uint64_t(std::uint64_t)> JobMemory::GrowthOf(JobId job) const {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return {};
  return [account = options_.memory, session = promise->second.session](std::uint64_t needed) {
    return account->Grow(session, needed);
  };
}

std::uint64_t JobMemory::Promised(JobId job) const {
  const auto promise = promised_.find(job);
  return promise == promised_.end() ? 0 : promise->second.need.total();
}

std::optional<std::uint64_t> JobMemory::BoundOf(JobId job) const {
  const auto promise = promised_.find(job);
  if (promise == promised_.end() || !promise->second.guess) return std::nullopt;
  return promise->second.need.total();
}

void JobMemory::Watch(JobId job, std::uint64_t resident, std::uint64_t peak, bool settled) {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return;
  options_.memory->Measure(promise->second.session, resident);
  SetPromised(promise->second, CorrectNeed(promise->second.need, peak, settled));
}

void JobMemory::SetPromised(Promise& promise, const JobNeed& need) const {
  if (need == promise.need) return;
  promise.need = need;
  options_.memory->Recount(promise.session, promise.Session());
}

std::string JobMemory::WhyWaiting(JobId job, bool in_detail) const {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return "";
  const auto detail = in_detail ? MemoryBook::Detail::kWhoseEnd : MemoryBook::Detail::kNumbers;
  return options_.memory->WhyWaiting(promise->second.session, detail);
}

Status JobMemory::CheckEverFits(const TrainingJob& job, const std::filesystem::path& model) const {
  if (options_.memory == nullptr) return {};
  TANDEM_ASSIGN(JobNeed need, options_.need(job, model));
  const bool fits = job.fit && !job.memory;
  if (fits) need = NeedWithin(need, 0);
  return options_.memory->CheckEverFits(SessionOf(need, /*paused=*/false, fits));
}

int JobMemory::news_fd() const {
  return options_.memory == nullptr ? -1 : options_.memory->news_fd();
}

bool JobMemory::TakeNews() {
  return options_.memory != nullptr && options_.memory->TakeNews();
}

}  // namespace tandem::jobs
