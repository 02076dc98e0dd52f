#include "server/metrics/process_usage.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <unistd.h>

#include "api/base/mutex.h"

namespace tandem {
namespace {

std::uint64_t CountEntries(const char* folder) {
  std::error_code ec;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) ++count;
  return count;
}

struct CpuTimes {
  std::uint64_t busy = 0;
  std::uint64_t total = 0;
};

CpuTimes ReadCpuTimes() {
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  CpuTimes times;
  // user nice system idle iowait irq softirq steal
  for (int i = 0; i < 8; ++i) {
    std::uint64_t value = 0;
    stat >> value;
    times.total += value;
    if (i != 3 && i != 4) times.busy += value;
  }
  return times;
}

Mutex utilization_mu;
CpuTimes last_times GUARDED_BY(utilization_mu);

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  usage.resident_bytes = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  usage.open_fds = CountEntries("/proc/self/fd");
  usage.threads = CountEntries("/proc/self/task");
  return usage;
}

double MachineCpuUtilization() {
  const CpuTimes now = ReadCpuTimes();
  MutexLock lock(utilization_mu);
  const CpuTimes last = std::exchange(last_times, now);
  if (last.total == 0 || now.total <= last.total) return 0;
  return static_cast<double>(now.busy - last.busy) / static_cast<double>(now.total - last.total);
}

}  // namespace tandem
