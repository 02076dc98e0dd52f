#include "server/jobs/job_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/wire/training_job_json.h"
#include "server/jobs/job_folder.h"
#include "server/memory/memory_account.h"

namespace tandem::jobs {
namespace {

SessionNeed SessionOf(const JobNeed& need, bool paused) {
  return {.persistent = need.persistent, .ephemeral = need.ephemeral, .stays = paused};
}

}  // namespace

JobMemory::~JobMemory() {
  for (const auto& [job, promise] : promised_) options_.memory->Leave(promise.session);
}

JobNeed JobMemory::NeedOf(const JobRecord& record) const {
  const auto job = ParseTrainingJob(record.spec);
  if (!job) return GuessNeed({}, {});
  if (const auto noted = NeedAsNoted(record.memory); noted && !job->memory) return *noted;
  const auto need = options_.need(*job, JobFolder::Of(options_.state, record.id).source_model());
  return need ? *need : GuessNeed(*job, {});
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
  int read = 0;
  for (const JobRecord& record : due) {
    if (promised_.contains(record.id)) continue;
    if (++read > kMostRead) return false;
    const JobNeed need = NeedOf(record);
    const SessionId session =
        options_.memory->Ask(Format("job {}", record.id), SessionOf(need, false), -std::int64_t{record.priority});
    promised_.emplace(record.id, Promise{.session = session, .need = need});
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
  options_.memory->Recount(promise->second.session, SessionOf(promise->second.need, paused));
}

void JobMemory::Expect(JobId job, const JobNeed& need) {
  const auto promise = promised_.find(job);
  if (promise != promised_.end() && !promise->second.need.bounded) Promised(promise->second, need);
}

void JobMemory::Watch(JobId job, std::uint64_t resident, std::uint64_t peak, bool settled) {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return;
  options_.memory->Measure(promise->second.session, resident);
  Promised(promise->second, CorrectNeed(promise->second.need, peak, settled));
}

void JobMemory::Promised(Promise& promise, const JobNeed& need) const {
  if (need == promise.need) return;
  promise.need = need;
  options_.memory->Recount(promise.session, SessionOf(need, promise.paused));
}

std::string JobMemory::WhyWaiting(JobId job, bool in_detail) const {
  const auto promise = promised_.find(job);
  if (promise == promised_.end()) return "";
  const auto detail = in_detail ? MemoryBook::Detail::kWhoseEnd : MemoryBook::Detail::kNumbers;
  return options_.memory->WhyWaiting(promise->second.session, detail);
}

Status JobMemory::CheckEverFits(const TrainingJob& job, const std::filesystem::path& model) const {
  if (options_.memory == nullptr) return {};
  TANDEM_ASSIGN(const JobNeed need, options_.need(job, model));
  return options_.memory->CheckEverFits(SessionOf(need, false));
}

int JobMemory::news_fd() const {
  return options_.memory == nullptr ? -1 : options_.memory->news_fd();
}

bool JobMemory::TakeNews() {
  return options_.memory != nullptr && options_.memory->TakeNews();
}

}  // namespace tandem::jobs
