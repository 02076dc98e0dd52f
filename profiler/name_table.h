#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

// Numbers for names that are few and stay, such as those of models, so that records can hold them. Names are never
// forgotten; when there is no room near a new one's place it has no number. Fixed memory, thread-safe without locks.
class NameTable {
 public:
  static constexpr std::size_t kRoom = 512;
  static constexpr std::size_t kLongest = 255;  // The rest of a name is cut off.

  // The same for the same name; 0: there is no room for it.
  [[nodiscard]] std::uint32_t NumberOf(std::string_view name) noexcept;
  // Empty for 0.
  [[nodiscard]] std::string NameOf(std::uint32_t number) const;

 private:
  struct Entry {
    std::atomic<std::uint64_t> hash{0};  // 0: free. Whoever sets it writes the text.
    std::atomic<std::uint32_t> size{0};  // Of the text and 1; 0: it is not written yet.
    std::array<char, kLongest> text{};
  };

  std::array<Entry, kRoom> entries_;
};

}  // namespace tandem
