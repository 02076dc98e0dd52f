#include "profiler/client_id.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace tandem {
namespace {

// Whether a character of UTF-8 goes on there.
bool IsInside(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

ClientId ClientId::Of(std::string_view id) noexcept {
  ClientId made{
      .hash = std::hash<std::string_view>()(id),
      .size = static_cast<std::uint16_t>(std::min<std::size_t>(id.size(), std::numeric_limits<std::uint16_t>::max()))};
  std::copy_n(id.begin(), std::min(id.size(), kShown), made.text.begin());
  return made;
}

std::string ClientId::Text() const {
  if (size <= kShown) return {text.data(), size};
  // The character that the text may end in the middle of goes.
  std::size_t end = kShown;
  while (end > 0 && IsInside(text[end - 1])) --end;
  if (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0x80) != 0) --end;
  return std::string(text.data(), end) + "…";
}

}  // namespace tandem
