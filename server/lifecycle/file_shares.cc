#include "server/lifecycle/file_shares.h"

#include <algorithm>
#include <string>

#include "memory/shared_regions.h"
#include "server/http/listener.h"
#include "server/lifecycle/serve_options.h"
#include "server/log/log.h"
#include "server/metrics/process_usage.h"

namespace tandem {

FileShares ShareFiles(std::size_t connections) {
  // For models being loaded, poll sets of threads yet to start, and refusals under way.
  constexpr std::size_t kKept = 40;
  constexpr std::size_t kMetrics = 256;
  const std::size_t taken = ReadProcessUsage().open_fds + kKept;
  const std::size_t limit = http::RaiseFileLimit();
  const std::size_t free = limit > taken ? limit - taken : 0;
  const std::size_t metrics = std::min(kMetrics, free / 8);
  const std::size_t regions = std::min(SharedRegions::kMaxRegions, free / 16);
  const std::size_t left = free - metrics - regions;
  const auto share = [&](std::size_t part) { return std::max<std::size_t>(4, std::min(connections, part)); };
  const FileShares shares{.http = share(left / 8 * 5),
                          .grpc = share(left / 8 * 3),
                          .metrics = share(metrics),
                          .regions = std::max<std::size_t>(4, regions)};
  if (shares.http < connections || shares.grpc < connections) {
    // Whoever left it at the default asked for as many as there may be.
    Log(connections == ServeOptions().max_connections ? LogLevel::kInfo : LogLevel::kWarning,
        "fewer connections than --max-connections: the limit on open files leaves no room for more",
        {{"max_connections", std::to_string(connections)},
         {"http", std::to_string(shares.http)},
         {"grpc", std::to_string(shares.grpc)},
         {"open_files", std::to_string(limit)}});
  }
  return shares;
}

}  // namespace tandem
