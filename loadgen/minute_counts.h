#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "loadgen/trace.h"

namespace tandem::loadgen {

// How many requests came in each minute, from the first one on. Public traces are often no finer than that.
using MinuteCounts = std::vector<std::uint64_t>;

inline constexpr std::size_t kMaxMinutes = 100'000;
inline constexpr std::uint64_t kMaxMinuteCount = 1'000'000'000;  // In one field of a file.

// The counts of Azure Functions' public trace: HashOwner,HashApp,HashFunction,Trigger,1,2,…,1440, a row for each
// function; fewer minutes will do. Adds up the rows of `function` (its HashFunction), or all when it is empty. Strict:
// kInvalidArgument names the file, the line and the field.
[[nodiscard]] Result<MinuteCounts> ParseAzureCounts(std::string_view text, std::string_view name,
                                                    std::string_view function = {});
[[nodiscard]] Result<MinuteCounts> ReadAzureCounts(const std::filesystem::path& file, std::string_view function = {});

// minute,count with minutes that rise. The first row's minute is the start; minutes that are missing have none.
[[nodiscard]] Result<MinuteCounts> ParseMinuteCounts(std::string_view text, std::string_view name);
[[nodiscard]] Result<MinuteCounts> ReadMinuteCounts(const std::filesystem::path& file);

// How the requests of a minute lie in it.
enum class Spread : std::uint8_t {
  kRandom,  // Each anywhere: as a Poisson process that happens to have that count.
  kEven,    // At equal distances.
};

struct SpreadOptions {
  Spread spread = Spread::kRandom;
  std::uint64_t seed = 1;  // kRandom only.
  double speed = 1;        // 60 plays a minute in a second.
  double scale = 1;        // Of the counts. The total is scaled and rounded once, not minute by minute.
  std::string model;       // Of every row; empty: the only model of the run.
  std::uint32_t size = 1;  // Of every row.
};

inline constexpr double kMaxSpeed = 1e6;
inline constexpr double kMaxScale = 1e6;

// The trace of such counts. Pure: the same options give the same rows. kTooLarge when a trace file could not hold them.
[[nodiscard]] Result<Trace> SpreadCounts(const MinuteCounts& counts, const SpreadOptions& options);

}  // namespace tandem::loadgen
