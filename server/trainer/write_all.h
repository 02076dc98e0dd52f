#pragma once

#include <string_view>

namespace tandem {

// Writes all of it, unless the other end has gone or the disk is full: then the rest is lost.
void WriteAll(int fd, std::string_view text);

}  // namespace tandem
