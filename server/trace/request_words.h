#pragma once

#include <string>
#include <vector>

#include "server/trace/request_story.h"

namespace tandem::trace {

// Why a request took as long as it did, or was not answered: one sentence a line, what became of it first. Same story,
// same words.
[[nodiscard]] std::vector<std::string> WordsOf(const RequestStory& story);

}  // namespace tandem::trace
