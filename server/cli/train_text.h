#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "api/wire/json_fields.h"
#include "server/cli/sse_reader.h"
#include "server/cli/train_progress.h"

// What `tandem train` prints, as text. Pure. What comes from a server is taken for what it should be only after a look:
// kInternal when it is something else.

namespace tandem::cli {

// One line a problem, each with its pointer, indented.
[[nodiscard]] std::string ProblemLines(const std::vector<JsonMistake>& problems);

// A table of the jobs of a page.
[[nodiscard]] Result<std::string> JobTable(const Json::Value& page);

// All about one job, a line a fact, and the job as it was submitted.
[[nodiscard]] Result<std::string> JobText(const Json::Value& json);

// What a job would take of memory, a line a part.
[[nodiscard]] Result<std::string> EstimateText(const Json::Value& answer);

[[nodiscard]] Result<std::string> CheckpointTable(const Json::Value& answer);

// A line a series: how many points there are, the first, the last, the least and the largest value.
[[nodiscard]] Result<std::string> SeriesTable(const Json::Value& answer);

// One series drawn over its steps, `rows` high and `columns` wide, with the ends of both scales. kNotFound when there
// is no such series or it has no values.
[[nodiscard]] Result<std::string> SeriesPlot(const Json::Value& answer, const std::string& name, int rows, int columns);

// "2026-01-31T12:00:00.000Z  job 7  state  queued → admitted", without a line end.
[[nodiscard]] Result<std::string> EventLine(const ServerSentEvent& event);
// {"id", "event", "job", "time", "body"} on one line.
[[nodiscard]] Result<Json::Value> EventJson(const ServerSentEvent& event);

}  // namespace tandem::cli
