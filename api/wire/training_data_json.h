#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/training_job.h"
#include "api/wire/json_fields.h"

// Parts of api/wire/training_job_json.h: where the examples of a job come from, and the texts of a job.

namespace tandem {

inline constexpr std::size_t kMaxJobText = 255;   // Bytes of a name or pattern.
inline constexpr std::size_t kMaxJobPath = 1024;  // Bytes of a path.
inline constexpr std::int64_t kMaxJobCount = 1'000'000'000;

// "digits.npz", or {"kind": …, "path": …, …}. `pointer` is that of the value.
[[nodiscard]] DataSpec ReadDataSpec(const Json::Value& value, const std::string& pointer,
                                    std::vector<JsonMistake>& mistakes);
[[nodiscard]] Json::Value DataSpecToJson(const DataSpec& data);

// 1 to kMaxJobText bytes of printable UTF-8. What is wrong is noted and leaves the target as it is.
void ReadJobText(JsonFields& fields, const std::string& pointer, const Json::Value& value, std::string& target);
void ReadJobText(JsonFields& fields, const char* name, std::string& target);
// The name of a job or model: also without '/', '\' and a '.' in front.
void ReadJobName(JsonFields& fields, const std::string& pointer, const Json::Value& value, std::string& target);
// A list of 1 to `most` texts, or one text alone.
void ReadJobTexts(JsonFields& fields, const char* name, std::size_t most, std::vector<std::string>& target);

}  // namespace tandem
