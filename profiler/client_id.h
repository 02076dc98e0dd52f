#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// The id that a client gave its request, of any length: its hash, and its first bytes for people.
struct ClientId {
  static constexpr std::size_t kShown = 24;

  std::uint64_t hash = 0;
  std::uint16_t size = 0;  // Up to 65535.
  std::array<char, kShown> text{};

  [[nodiscard]] static ClientId Of(std::string_view id) noexcept;
  // As much of it as is known, cut between characters and with "…" when that is not all.
  [[nodiscard]] std::string Text() const;

  friend bool operator==(const ClientId&, const ClientId&) = default;
};

}  // namespace tandem
