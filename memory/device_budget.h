#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/result.h"

namespace tandem {

// How much of a device's memory the operator gives to all sessions together.
struct MemoryShare {
  std::optional<std::uint64_t> bytes;
  double percent = 80;  // Of what there is, where no bytes are said.

  friend bool operator==(const MemoryShare&, const MemoryShare&) = default;
};

// "12GiB", "8000000000", "75%". kInvalidArgument names what is wrong with it.
[[nodiscard]] Result<MemoryShare> ParseMemoryShare(std::string_view text);

// What there is of it.
struct MemoryThere {
  std::uint64_t device = 0;
  std::optional<std::uint64_t> limit;  // Of control groups; may change at any time.

  // May all of it be used: never more than the device has, whatever a limit says.
  [[nodiscard]] std::uint64_t usable() const { return limit && *limit < device ? *limit : device; }
  friend bool operator==(const MemoryThere&, const MemoryThere&) = default;
};

// How much of it is shared out, and why so much.
struct DeviceBudget {
  std::uint64_t bytes = 0;
  MemoryShare share;
  MemoryThere there;

  friend bool operator==(const DeviceBudget&, const DeviceBudget&) = default;
};

// So many bytes, as far as they are there, or that part of what is there. Pure.
[[nodiscard]] DeviceBudget BudgetOf(const MemoryShare& share, const MemoryThere& there);

// Where it comes from, for people: "80 % of the machine's 23.5 GiB".
[[nodiscard]] std::string BudgetWords(const DeviceBudget& budget);

}  // namespace tandem
