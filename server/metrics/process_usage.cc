#include "server/metrics/process_usage.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

namespace tandem {
namespace {

// The kernel says how many there are since Linux 6.2. To look at each takes milliseconds when there are thousands, so
// that is only for those that do not.
std::uint64_t CountOpenFiles() {
  constexpr const char* kFolder = "/proc/self/fd";
  struct stat info{};
  if (::stat(kFolder, &info) == 0 && info.st_size > 0) return static_cast<std::uint64_t>(info.st_size);
  std::error_code ec;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator it(kFolder, ec), end; !ec && it != end; it.increment(ec)) ++count;
  return count;
}

std::uint64_t CountThreads() {
  std::ifstream status("/proc/self/status");
  std::uint64_t threads = 0;
  for (std::string key; status >> key;) {
    if (key == "Threads:") {
      status >> threads;
      break;
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return threads;
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  usage.resident_bytes = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  usage.open_fds = CountOpenFiles();
  usage.threads = CountThreads();
  return usage;
}

MemoryUsage ReadMemoryUsage() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t total = 0;
  std::uint64_t available = 0;
  std::string key;
  for (std::uint64_t kib = 0; available == 0 && file >> key >> kib;) {
    if (key == "MemTotal:") total = kib * 1024;
    if (key == "MemAvailable:") available = kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return {.total_bytes = total, .used_bytes = total - available};
}

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

CpuUtilization::CpuUtilization()
    : CpuUtilization(ReadCpuTimes(),
                     static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK) * ::sysconf(_SC_NPROCESSORS_ONLN))) {}

double CpuUtilization::At(CpuTimes now) {
  MutexLock lock(mu_);
  if (now.total < last_.total + least_) return answer_;
  answer_ = now.busy <= last_.busy
                ? 0
                : static_cast<double>(now.busy - last_.busy) / static_cast<double>(now.total - last_.total);
  last_ = now;
  return answer_;
}

}  // namespace tandem
