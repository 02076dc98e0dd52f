#pragma once

#include <json/value.h>

#include "memory/memory_map.h"

namespace tandem::rest {

// Who has how much of the machine's memory, as the API shows it.
[[nodiscard]] Json::Value MemoryToJson(const MemoryMap& map);

}  // namespace tandem::rest
