#include "server/lifecycle/log_wiring.h"

#include <string>

#include "api/base/clock.h"
#include "server/log/log.h"
#include "server/log/log_limit.h"

namespace tandem {

void LogTransport(std::string_view text) {
  static LogLimit limit(10);
  const auto left_out = limit.Allow(RealClock::Instance().Now());
  if (!left_out) return;
  const auto last = text.find_last_not_of(" \r\n");
  LogWarning(text.substr(0, last == std::string_view::npos ? 0 : last + 1),
             {{"from", "trantor"}, {"left_out", std::to_string(*left_out)}});
}

void ApplyLogSettings(const LogSettings::Values& values) {
  const auto on = [&](const char* key) { return std::get<bool>(values.at(key)); };
  SetLogLevels({.debug = std::get<std::uint32_t>(values.at("log_verbose_level")) > 0,
                .info = on("log_info"),
                .warning = on("log_warning"),
                .error = on("log_error")});
  SetLogTime(std::get<std::string>(values.at("log_format")) == "ISO8601" ? LogTime::kUtc : LogTime::kLocal);
}

LogSettings::Values InitialLogSettings(const ServeOptions& options) {
  const LogLevels levels = LevelsFrom(ParseLogLevel(options.log_level).value_or(LogLevel::kInfo));
  LogSettings::Values values = LogSettings::Defaults();
  values["log_verbose_level"] = std::uint32_t{levels.debug ? 1u : 0u};
  values["log_info"] = levels.info;
  values["log_warning"] = levels.warning;
  values["log_error"] = levels.error;
  return values;
}

}  // namespace tandem
