#pragma once

#include <map>
#include <string>
#include <vector>

#include <json/value.h>

#include "server/jobs/job_record.h"

// What the job store holds, as the API shows it.

namespace tandem::rest {

[[nodiscard]] Json::Value JobToJson(const jobs::JobRecord& job);
[[nodiscard]] Json::Value PageToJson(const jobs::JobPage& page);
[[nodiscard]] Json::Value CheckpointsToJson(const std::vector<jobs::CheckpointRecord>& checkpoints);
// {"loss": {"steps": […], "values": […]}, …}
[[nodiscard]] Json::Value SeriesToJson(const std::map<std::string, std::vector<jobs::SeriesPoint>>& series);
// An event of a stream: id, event and data lines, and the empty line that ends it.
[[nodiscard]] std::string EventToSse(const jobs::JobEvent& event);

}  // namespace tandem::rest
