#pragma once

#include <cstdint>
#include <optional>

#include "api/base/result.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// These print what the server has and, with `follow`, what comes, until the job has ended; events of all jobs have no
// end. A server that goes away for a while is asked again from where it stopped.

[[nodiscard]] Status PrintLog(ApiClient& client, std::int64_t job, bool follow);

struct EventsWanted {
  std::optional<std::int64_t> job;  // All jobs when there is none.
  bool follow = false;
  bool json = false;  // One object a line.
};

[[nodiscard]] Status PrintEvents(ApiClient& client, const EventsWanted& wanted);

}  // namespace tandem::cli
