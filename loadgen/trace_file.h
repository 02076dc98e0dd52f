#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "loadgen/trace.h"

namespace tandem::loadgen {

inline constexpr std::string_view kTraceHeader = "time_s,model,size";
inline constexpr std::uint32_t kMaxTraceSize = 1'000'000;
inline constexpr std::size_t kMaxTraceModelName = 255;

struct TraceLimits {
  std::uint64_t bytes = 1ULL << 30;
  std::uint64_t rows = 50'000'000;
  std::size_t models = 10'000;
};

// Whether a model can stand in a trace: empty, or valid UTF-8 without commas, quotes and control characters.
[[nodiscard]] Status CheckTraceModel(std::string_view model);

// A trace from its text: the header, then a row for each request, by time. Times are at most kMaxSeconds; an empty size
// is 1. Strict: kInvalidArgument or kTooLarge names the file, the line and the field. docs/load-generator.md has the
// format.
[[nodiscard]] Result<Trace> ParseTrace(std::string_view text, std::string_view name, const TraceLimits& limits = {});
[[nodiscard]] Result<Trace> ReadTraceFile(const std::filesystem::path& file, const TraceLimits& limits = {});

// The text that ParseTrace() reads as this trace. Rows of the same time are in the order of their models.
[[nodiscard]] std::string TraceText(const Trace& trace);
// Writes it whole or not at all. kTooLarge where it would be larger than can be read.
[[nodiscard]] Status WriteTraceFile(const std::filesystem::path& file, const Trace& trace);

}  // namespace tandem::loadgen
