#include "colocation/job_ledger.h"

#include <algorithm>

namespace tandem {

void JobLedger::Add(SessionId job) {
  JobHad least;
  for (bool first = true; const auto& [other, had] : had_) {
    least.time = first ? had.time : std::min(least.time, had.time);
    least.byte_time = first ? had.byte_time : std::min(least.byte_time, had.byte_time);
    first = false;
  }
  had_.try_emplace(job, least);
}

void JobLedger::Ran(SessionId job, std::chrono::nanoseconds time, std::uint64_t bytes) {
  const auto found = had_.find(job);
  if (found == had_.end()) return;
  found->second.time += time;
  found->second.byte_time += static_cast<double>(time.count()) * static_cast<double>(bytes);
}

JobHad JobLedger::Had(SessionId job) const {
  const auto found = had_.find(job);
  return found == had_.end() ? JobHad{} : found->second;
}

}  // namespace tandem
