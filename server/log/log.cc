#include "server/log/log.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "api/wire/json_text.h"
#include "server/log/log_writer.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error", "off"};

std::atomic<LogFormat> log_format{LogFormat::kText};

constexpr unsigned Bit(LogLevel level, bool on) {
  return on ? 1u << static_cast<unsigned>(level) : 0;
}

std::atomic<unsigned> enabled_levels{Bit(LogLevel::kInfo, true) | Bit(LogLevel::kWarning, true) |
                                     Bit(LogLevel::kError, true)};

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

std::string LineOf(std::string_view message, LogFields fields) {
  return log_format == LogFormat::kText ? TextLine(message, fields) : JsonFields(message, fields);
}

// Puts the time and the level to a line, and gives it to the writer of standard error. The base's mutex guards the
// pattern; it is never held while something is written.
class WriterSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Lives for ever: at the end of the process the writer's thread may still be held up.
  static const std::shared_ptr<WriterSink>& Instance() {
    static const auto& sink = *new std::shared_ptr<WriterSink>(std::make_shared<WriterSink>());
    return sink;
  }

  [[nodiscard]] LogWriter& writer() { return writer_; }

 private:
  // Some ten thousand lines.
  static constexpr std::size_t kMaxWaitingBytes = 4 << 20;

  void sink_it_(const spdlog::details::log_msg& message) override { writer_.Write(Formatted(message)); }
  void flush_() override {}

  [[nodiscard]] std::string Formatted(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    return {line.data(), line.size()};
  }

  [[nodiscard]] std::string Notice(std::uint64_t dropped) {
    const std::string text =
        LineOf("lines of the log were dropped: they were not read in time", {{"lines", std::to_string(dropped)}});
    const std::lock_guard lock(mutex_);
    return Formatted(spdlog::details::log_msg("tandem", spdlog::level::warn, text));
  }

  LogWriter writer_{STDERR_FILENO, kMaxWaitingBytes, [this](std::uint64_t dropped) { return Notice(dropped); }};
};

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

LogLevels LevelsFrom(LogLevel level) {
  return {.debug = level <= LogLevel::kDebug,
          .info = level <= LogLevel::kInfo,
          .warning = level <= LogLevel::kWarning,
          .error = level <= LogLevel::kError};
}

void SetUpLog(LogLevel level, LogFormat format) {
  log_format = format;
  auto logger = std::make_shared<spdlog::logger>("tandem", WriterSink::Instance());
  // What is written is decided before it gets here.
  logger->set_level(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  SetLogLevels(LevelsFrom(level));
  SetLogTime(LogTime::kLocal);
}

void SetLogLevels(const LogLevels& levels) {
  enabled_levels.store(Bit(LogLevel::kDebug, levels.debug) | Bit(LogLevel::kInfo, levels.info) |
                           Bit(LogLevel::kWarning, levels.warning) | Bit(LogLevel::kError, levels.error),
                       std::memory_order_relaxed);
}

void SetLogTime(LogTime time) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  if (log_format == LogFormat::kJson) {
    logger->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})", spdlog::pattern_time_type::utc);
  } else if (time == LogTime::kUtc) {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
  } else {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v", spdlog::pattern_time_type::local);
  }
}

bool LogEnabled(LogLevel level) {
  return (enabled_levels.load(std::memory_order_relaxed) & Bit(level, true)) != 0;
}

void Log(LogLevel level, std::string_view message, LogFields fields) {
  if (!LogEnabled(level)) return;
  const std::string line = LineOf(message, fields);
  // As a string view: the line is not a format string.
  spdlog::default_logger_raw()->log(SpdLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

void LogAsIs(std::string line) {
  WriterSink::Instance()->writer().Write(std::move(line) + "\n");
}

bool FlushLog(std::chrono::milliseconds at_most) {
  return WriterSink::Instance()->writer().Flush(at_most);
}

std::uint64_t LogLinesDropped() {
  return WriterSink::Instance()->writer().dropped();
}

}  // namespace tandem
