#include "loadgen/minute_counts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/arrival_spec.h"
#include "loadgen/csv_lines.h"
#include "loadgen/number_text.h"
#include "loadgen/trace_file.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMostAzureMinutes = 1440;
constexpr std::string_view kMinuteHeader = "minute,count";
constexpr CsvLimits kLimits{.bytes = 1ULL << 30, .line = 1 << 16};

std::optional<std::uint64_t> Count(std::string_view text) {
  const auto count = ParseCount(text);
  return count && *count <= kMaxMinuteCount ? count : std::nullopt;
}

std::unexpected<Error> NoCount(std::string_view field, std::string_view text) {
  return Invalid("{} must be a whole number from 0 to {}, got '{}'", field, kMaxMinuteCount, Excerpt(text));
}

// Takes the lines of an Azure file. Used by one thread.
class AzureReader {
 public:
  explicit AzureReader(std::string_view function) : function_(function) {}

  Status Line(std::string_view line) {
    SplitFields(line, fields_);
    if (!header_seen_) return Header();
    if (fields_.size() != kNames.size() + counts_.size()) {
      return Invalid("a row must have {} fields as the header has, got {}", kNames.size() + counts_.size(),
                     fields_.size());
    }
    const bool wanted = function_.empty() || fields_[kFunction] == function_;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      // Also where it is not wanted: a file that is broken somewhere is not to be trusted elsewhere.
      const std::string_view text = fields_[kNames.size() + i];
      const auto count = Count(text);
      if (!count) return NoCount(Format("minute {}", i + 1), text);
      if (wanted) counts_[i] += *count;
    }
    found_ = found_ || wanted;
    return {};
  }

  Result<MinuteCounts> Finish(std::string_view name) {
    if (!header_seen_) return Invalid("'{}' is empty", name);
    if (!found_ && function_.empty()) return Invalid("'{}' has no rows", name);
    if (!found_) return Invalid("'{}' has no row with HashFunction '{}'", name, Excerpt(function_));
    return std::move(counts_);
  }

 private:
  static constexpr std::array<std::string_view, 4> kNames{"HashOwner", "HashApp", "HashFunction", "Trigger"};
  static constexpr std::size_t kFunction = 2;

  Status Header() {
    const std::size_t minutes = fields_.size() - std::min(fields_.size(), kNames.size());
    if (minutes < 1 || minutes > kMostAzureMinutes) {
      return Invalid(
          "the header must be HashOwner,HashApp,HashFunction,Trigger and then 1 to {} minutes, got {} fields",
          kMostAzureMinutes, fields_.size());
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string expected = i < kNames.size() ? std::string(kNames[i]) : std::to_string(i - kNames.size() + 1);
      if (fields_[i] != expected) {
        return Invalid("field {} of the header must be '{}', got '{}'", i + 1, expected, Excerpt(fields_[i]));
      }
    }
    counts_.assign(minutes, 0);
    header_seen_ = true;
    return {};
  }

  const std::string function_;
  bool header_seen_ = false;
  bool found_ = false;
  std::vector<std::string_view> fields_;
  MinuteCounts counts_;
};

// Takes the lines of a minute,count file. Used by one thread.
class MinuteReader {
 public:
  Status Line(std::string_view line) {
    if (!header_seen_) {
      if (line != kMinuteHeader) return Invalid("the header must be '{}', got '{}'", kMinuteHeader, Excerpt(line));
      header_seen_ = true;
      return {};
    }
    SplitFields(line, fields_);
    if (fields_.size() != 2) return Invalid("a row must have 2 fields ({}), got {}", kMinuteHeader, fields_.size());
    const auto minute = Count(fields_[0]);
    if (!minute) return NoCount("minute", fields_[0]);
    const auto count = Count(fields_[1]);
    if (!count) return NoCount("count", fields_[1]);
    return Add(*minute, *count);
  }

  Result<MinuteCounts> Finish(std::string_view name) {
    if (!header_seen_) return Invalid("'{}' is empty", name);
    if (counts_.empty()) return Invalid("'{}' has no rows", name);
    return std::move(counts_);
  }

 private:
  Status Add(std::uint64_t minute, std::uint64_t count) {
    if (counts_.empty()) first_ = minute;
    const std::uint64_t next = first_ + counts_.size();
    if (minute < next) return Invalid("minute must rise, got '{}' after {}", minute, next - 1);
    if (minute - first_ >= kMaxMinutes) {
      return Fail(ErrorCode::kTooLarge, "minute must be less than {} after the first, {}, got '{}'", kMaxMinutes,
                  first_, minute);
    }
    counts_.resize(minute - first_, 0);
    counts_.push_back(count);
    return {};
  }

  bool header_seen_ = false;
  std::vector<std::string_view> fields_;
  std::uint64_t first_ = 0;
  MinuteCounts counts_;
};

template <typename Reader>
Result<MinuteCounts> FromText(Reader reader, std::string_view text, std::string_view name) {
  TANDEM_TRY(ReadLines(text, name, kLimits, [&](std::string_view line) { return reader.Line(line); }));
  return reader.Finish(name);
}

template <typename Reader>
Result<MinuteCounts> FromFile(Reader reader, const std::filesystem::path& file) {
  TANDEM_TRY(ReadFileLines(file, kLimits, [&](std::string_view line) { return reader.Line(line); }));
  return reader.Finish(file.string());
}

Status CheckOptions(const MinuteCounts& counts, const SpreadOptions& options) {
  if (!(options.speed > 0 && options.speed <= kMaxSpeed)) {
    return Invalid("speed must be above 0 and at most {}, got {}", kMaxSpeed, options.speed);
  }
  if (!(options.scale > 0 && options.scale <= kMaxScale)) {
    return Invalid("scale must be above 0 and at most {}, got {}", kMaxScale, options.scale);
  }
  if (options.size < 1 || options.size > kMaxTraceSize) {
    return Invalid("size must be from 1 to {}, got {}", kMaxTraceSize, options.size);
  }
  TANDEM_TRY(CheckTraceModel(options.model));
  if (const double seconds = 60 * static_cast<double>(counts.size()) / options.speed; seconds > kMaxSeconds) {
    return Invalid("{} minutes at speed {} take {} seconds, more than {}", counts.size(), options.speed, seconds,
                   kMaxSeconds);
  }
  return {};
}

// So that the sum of the first n is that of the counts, scaled and rounded, for every n.
Result<MinuteCounts> Scale(const MinuteCounts& counts, double scale) {
  MinuteCounts scaled;
  scaled.reserve(counts.size());
  std::uint64_t sum = 0, scaled_sum = 0;
  for (const std::uint64_t count : counts) {
    sum += count;
    const long double exact = static_cast<long double>(sum) * scale;
    if (const TraceLimits limits; exact > static_cast<long double>(limits.rows)) {
      return Fail(ErrorCode::kTooLarge, "a trace must have at most {} rows: scale the counts down", limits.rows);
    }
    const auto now = static_cast<std::uint64_t>(std::llround(exact));
    scaled.push_back(now - scaled_sum);
    scaled_sum = now;
  }
  if (scaled_sum == 0) return Invalid("the counts hold no request, scaled by {}", scale);
  return scaled;
}

// Where the requests of a minute lie, as parts of it, in order.
class MinuteSpread {
 public:
  explicit MinuteSpread(const SpreadOptions& options) : even_(options.spread == Spread::kEven), random_(options.seed) {}

  const std::vector<double>& Draw(std::uint64_t count) {
    parts_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      parts_[i] = even_ ? (static_cast<double>(i) + 0.5) / static_cast<double>(count)
                        : static_cast<double>(random_() >> 11) * 0x1p-53;
    }
    if (!even_) std::ranges::sort(parts_);
    return parts_;
  }

 private:
  const bool even_;
  std::mt19937_64 random_;
  std::vector<double> parts_;
};

}  // namespace

Result<MinuteCounts> ParseAzureCounts(std::string_view text, std::string_view name, std::string_view function) {
  return FromText(AzureReader(function), text, name);
}

Result<MinuteCounts> ReadAzureCounts(const std::filesystem::path& file, std::string_view function) {
  return FromFile(AzureReader(function), file);
}

Result<MinuteCounts> ParseMinuteCounts(std::string_view text, std::string_view name) {
  return FromText(MinuteReader(), text, name);
}

Result<MinuteCounts> ReadMinuteCounts(const std::filesystem::path& file) {
  return FromFile(MinuteReader(), file);
}

Result<Trace> SpreadCounts(const MinuteCounts& counts, const SpreadOptions& options) {
  TANDEM_TRY(CheckOptions(counts, options));
  TANDEM_ASSIGN(const MinuteCounts scaled, Scale(counts, options.scale));
  const double minute_ns = 60e9 / options.speed;
  MinuteSpread spread(options);
  auto stream = std::make_shared<TraceStream>();
  stream->model = options.model;
  for (std::size_t minute = 0; minute < scaled.size(); ++minute) {
    // Rounded down apart, so that no request slips into the next minute.
    const auto start_ns = static_cast<std::int64_t>(static_cast<double>(minute) * minute_ns);
    for (const double part : spread.Draw(scaled[minute])) {
      const auto within_ns = static_cast<std::int64_t>(part * minute_ns);
      stream->rows.push_back({.time = nanoseconds(start_ns + within_ns), .size = options.size});
    }
  }
  return Trace{.streams = {std::move(stream)}};
}

}  // namespace tandem::loadgen
