#include "bench/open_files.h"

#include <algorithm>

#include <sys/resource.h>

namespace tandem::bench {

void AllowOpenFiles(int count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::max(limit.rlim_max, static_cast<rlim_t>(count));
  const rlimit raised{.rlim_cur = wanted, .rlim_max = wanted};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tandem::bench
