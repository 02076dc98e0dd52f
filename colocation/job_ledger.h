#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "memory/lane.h"

namespace tandem {

// What a job has had of a device.
struct JobHad {
  std::chrono::nanoseconds time{0};
  double byte_time = 0;  // Each nanosecond times the bytes that it held then.

  friend bool operator==(const JobHad&, const JobHad&) = default;
};

// What jobs that share a device have had of it, by which fair policies decide. A job that comes, or comes back from a
// pause, begins with the least that any has had who is there: it is owed nothing for the time before, and nobody has to
// stand back until it has caught up. Not thread-safe: its owner guards it.
class JobLedger {
 public:
  void Add(SessionId job);
  void Remove(SessionId job) { had_.erase(job); }
  // It ran for so long, and held so many bytes. Nothing is counted of a job that is not there.
  void Ran(SessionId job, std::chrono::nanoseconds time, std::uint64_t bytes);

  // Nothing of a job that is not there.
  [[nodiscard]] JobHad Had(SessionId job) const;

 private:
  std::map<SessionId, JobHad> had_;
};

}  // namespace tandem
