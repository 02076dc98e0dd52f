#pragma once

#include <string>

#include <json/value.h>

#include "server/trace/request_story.h"

namespace tandem::trace {

// Facts with times in microseconds since its arrival, and the words.
[[nodiscard]] Json::Value StoryJson(const RequestStory& story);
// The words alone, a line each, under a title.
[[nodiscard]] std::string StoryText(const RequestStory& story);

}  // namespace tandem::trace
