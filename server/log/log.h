#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/result.h"

namespace tandem {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
enum class LogFormat { kText, kJson };
enum class LogTime { kLocal, kUtc };

// Which levels are written, each by itself.
struct LogLevels {
  bool debug = false;
  bool info = true;
  bool warning = true;
  bool error = true;

  friend bool operator==(const LogLevels&, const LogLevels&) = default;
};

[[nodiscard]] Result<LogLevel> ParseLogLevel(std::string_view text);
[[nodiscard]] Result<LogFormat> ParseLogFormat(std::string_view text);
// `level` and all above it.
[[nodiscard]] LogLevels LevelsFrom(LogLevel level);

// Structured logs on standard error, one line an event: text for people ("… level message key=value") or JSON for
// machines. Thread-safe; set up once by main() before any other thread runs. A line is written soon, by a thread of its
// own: nobody waits for whoever reads the log, and when nobody reads it lines are dropped and counted.
void SetUpLog(LogLevel level, LogFormat format);
void SetLogLevels(const LogLevels& levels);
// How text lines tell the time; JSON always has UTC.
void SetLogTime(LogTime time);
// Ask first where it would cost something to make the line.
[[nodiscard]] bool LogEnabled(LogLevel level);

using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

void Log(LogLevel level, std::string_view message, LogFields fields = {});
// A line without time and level, whatever the levels are; in its place among the others.
void LogAsIs(std::string line);

// Waits until what has been said is written; false when the time is over first. Before the process ends.
bool FlushLog(std::chrono::milliseconds at_most = std::chrono::milliseconds(500));
// How many lines were dropped since the beginning.
[[nodiscard]] std::uint64_t LogLinesDropped();

inline void LogDebug(std::string_view message, LogFields fields = {}) {
  Log(LogLevel::kDebug, message, fields);
}
inline void LogInfo(std::string_view message, LogFields fields = {}) {
  Log(LogLevel::kInfo, message, fields);
}
inline void LogWarning(std::string_view message, LogFields fields = {}) {
  Log(LogLevel::kWarning, message, fields);
}
inline void LogError(std::string_view message, LogFields fields = {}) {
  Log(LogLevel::kError, message, fields);
}

}  // namespace tandem
