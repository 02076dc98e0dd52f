#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/wire/json_fields.h"
#include "colocation/simulation/scenario.h"

namespace tandem::cli {

// One iteration of a training job, from what `tandem profile JOB --json` wrote of it: an operator runs as often as it
// did for every run of the loss, of which there is one in an iteration. One that runs once takes the typical time; of
// one that runs several times, each time on something else, all runs together take what they took on average. The order
// is not recorded: heavy and light ones take turns. Every step is `cores` wide. Adds to the mistakes, each with its
// pointer within the profile, and is empty then. Members that are not known are of another version of the program.
[[nodiscard]] std::vector<simulation::Step> RecordedIteration(const Json::Value& profile, double cores,
                                                              std::vector<JsonMistake>& mistakes);

// The same from a file of at most 8 MB, by its name from a folder, in or below which it must be; mistakes with the file
// itself have the pointer "".
[[nodiscard]] std::vector<simulation::Step> ReadRecordedIteration(const std::filesystem::path& folder,
                                                                  const std::string& name, double cores,
                                                                  std::vector<JsonMistake>& mistakes);

}  // namespace tandem::cli
