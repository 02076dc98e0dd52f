#include "server/log/log.h"

#include <array>
#include <atomic>
#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error", "off"};

std::atomic<LogFormat> log_format{LogFormat::kText};

spdlog::level::level_enum SpdLevel(LogLevel level) {
  constexpr std::array levels = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                 spdlog::level::off};
  return levels[static_cast<std::size_t>(level)];
}

// A line break in a value would let a stranger forge a log line.
void AppendPlain(std::string_view text, std::string& out) {
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
}

std::string TextLine(std::string_view message, LogFields fields) {
  std::string line;
  AppendPlain(message, line);
  for (const auto& [key, value] : fields) {
    line.append(" ").append(key).append("=");
    AppendPlain(value, line);
  }
  return line;
}

std::string JsonFields(std::string_view message, LogFields fields) {
  std::string line = "\"message\":" + JsonString(message);
  for (const auto& [key, value] : fields)
    line.append(",").append(JsonString(key)).append(":").append(JsonString(value));
  return line;
}

}  // namespace

Result<LogLevel> ParseLogLevel(std::string_view text) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == text) return static_cast<LogLevel>(i);
  }
  return Invalid("unknown log level '{}'; known: debug, info, warning, error, off", text);
}

Result<LogFormat> ParseLogFormat(std::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return Invalid("unknown log format '{}'; known: text, json", text);
}

void SetUpLog(LogLevel level, LogFormat format) {
  log_format = format;
  auto logger = std::make_shared<spdlog::logger>("tandem", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(
      format == LogFormat::kText ? "%Y-%m-%dT%H:%M:%S.%e %l %v" : R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})",
      format == LogFormat::kText ? spdlog::pattern_time_type::local : spdlog::pattern_time_type::utc);
  logger->set_level(SpdLevel(level));
  spdlog::set_default_logger(std::move(logger));
}

void SetLogLevel(LogLevel level) {
  spdlog::default_logger_raw()->set_level(SpdLevel(level));
}

LogLevel GetLogLevel() {
  const auto current = spdlog::default_logger_raw()->level();
  for (int i = 0; i < 4; ++i) {
    if (SpdLevel(static_cast<LogLevel>(i)) >= current) return static_cast<LogLevel>(i);
  }
  return LogLevel::kOff;
}

void Log(LogLevel level, std::string_view message, LogFields fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (!logger->should_log(SpdLevel(level))) return;
  const std::string line = log_format == LogFormat::kText ? TextLine(message, fields) : JsonFields(message, fields);
  // As a string view: the line is not a format string.
  logger->log(SpdLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace tandem
