#include "server/core/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

TraceSettings::Values DefaultTraceSettings() {
  return {{"trace_file", {""}},    {"trace_level", {"OFF"}}, {"trace_rate", {"1000"}},
          {"trace_count", {"-1"}}, {"log_frequency", {"0"}}, {"trace_mode", {"triton"}}};
}

constexpr std::array<std::string_view, 3> kLevels = {"OFF", "TIMESTAMPS", "TENSORS"};

std::string ValueText(const LogSettingValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return "'" + Excerpt(*text) + "'";
  return std::to_string(std::get<std::uint32_t>(value));
}

constexpr std::string_view TypeName(const LogSettingValue& value) {
  constexpr std::string_view names[] = {"a boolean", "an unsigned integer", "a string"};
  return names[value.index()];
}

Status CheckLogSetting(const LogSettings::Values& current, const std::string& key, const LogSettingValue& value) {
  const auto known = current.find(key);
  if (known == current.end()) return Invalid("unknown log setting '{}'", Excerpt(key));
  if (known->second.index() != value.index()) {
    return Invalid("log setting '{}' takes {}, not {}", key, TypeName(known->second), ValueText(value));
  }
  if (key == "log_format") {
    const auto& format = std::get<std::string>(value);
    if (format != "default" && format != "ISO8601") {
      return Invalid("log setting 'log_format' takes 'default' or 'ISO8601', not '{}'", Excerpt(format));
    }
  }
  if (key == "log_file" && !std::get<std::string>(value).empty()) {
    return Fail(ErrorCode::kUnsupported, "log setting 'log_file' cannot be changed while the server runs");
  }
  return {};
}

Status CheckInteger(const std::string& key, const std::string& text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    return Invalid("trace setting '{}' takes an integer of at least {}, not '{}'", key, least, Excerpt(text));
  }
  return {};
}

Status CheckTraceSetting(const std::string& key, const std::vector<std::string>& values) {
  if (key == "trace_level") {
    if (values.empty()) return Invalid("trace setting 'trace_level' takes at least one level");
    if (values.size() > kLevels.size()) {
      return Invalid("trace setting 'trace_level' takes at most {} levels, not {}", kLevels.size(), values.size());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::ranges::contains(kLevels, values[i])) {
        return Invalid("trace setting 'trace_level' takes OFF, TIMESTAMPS and TENSORS, not '{}'", Excerpt(values[i]));
      }
      if (std::ranges::contains(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(i), values[i])) {
        return Invalid("trace setting 'trace_level' has '{}' twice", values[i]);
      }
    }
    return {};
  }
  if (!DefaultTraceSettings().contains(key)) return Invalid("unknown trace setting '{}'", Excerpt(key));
  if (values.size() != 1) return Invalid("trace setting '{}' takes one value, not {}", key, values.size());
  if (key == "trace_rate") return CheckInteger(key, values[0], 1);
  if (key == "trace_count") return CheckInteger(key, values[0], -1);
  if (key == "log_frequency") return CheckInteger(key, values[0], 0);
  if (key == "trace_mode" && values[0] != "triton" && values[0] != "opentelemetry") {
    return Invalid("trace setting 'trace_mode' takes 'triton' or 'opentelemetry', not '{}'", Excerpt(values[0]));
  }
  // A stranger must not choose which file the server writes.
  if (key == "trace_file" && !values[0].empty()) {
    return Fail(ErrorCode::kUnsupported, "trace setting 'trace_file' cannot be changed while the server runs");
  }
  return {};
}

}  // namespace

LogSettings::Values LogSettings::Defaults() {
  return {{"log_file", std::string()},
          {"log_info", true},
          {"log_warning", true},
          {"log_error", true},
          {"log_verbose_level", std::uint32_t{0}},
          {"log_format", std::string("default")}};
}

LogSettings::LogSettings(std::function<void(const Values&)> apply, Values initial)
    : apply_(std::move(apply)), values_(std::move(initial)) {}

LogSettings::Values LogSettings::Get() const {
  MutexLock lock(mu_);
  return values_;
}

Status LogSettings::Update(const Values& changes) {
  Values updated;
  {
    MutexLock lock(mu_);
    for (const auto& [key, value] : changes) TANDEM_TRY(CheckLogSetting(values_, key, value));
    updated = values_;
    for (const auto& [key, value] : changes) updated[key] = value;
    if (updated == values_) return {};
    values_ = updated;
  }
  apply_(updated);
  return {};
}

TraceSettings::TraceSettings() : global_(DefaultTraceSettings()) {}

TraceSettings::Values TraceSettings::Get(const std::string& model) const {
  MutexLock lock(mu_);
  Values values = global_;
  if (const auto own = models_.find(model); own != models_.end()) {
    for (const auto& [key, value] : own->second) values[key] = value;
  }
  return values;
}

Status TraceSettings::Update(const std::string& model, const Changes& changes) {
  for (const auto& [key, value] : changes) {
    TANDEM_TRY(CheckTraceSetting(key, value.value_or(DefaultTraceSettings()[key])));
  }
  MutexLock lock(mu_);
  Values& values = model.empty() ? global_ : models_[model];
  for (const auto& [key, value] : changes) {
    if (value) {
      values[key] = *value;
    } else if (model.empty()) {
      values[key] = DefaultTraceSettings()[key];
    } else {
      values.erase(key);
    }
  }
  return {};
}

}  // namespace tandem
