#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/result.h"

namespace tandem {

using LogSettingValue = std::variant<bool, std::uint32_t, std::string>;

// The logging extension's settings. Thread-safe. An update is checked whole before any of it takes effect.
class LogSettings {
 public:
  using Values = std::map<std::string, LogSettingValue>;

  // As long as nobody says otherwise.
  [[nodiscard]] static Values Defaults();

  // `apply` is told of every change, outside the lock. `initial` has the keys of Defaults() and holds already.
  explicit LogSettings(std::function<void(const Values&)> apply, Values initial = Defaults());

  [[nodiscard]] Values Get() const;
  [[nodiscard]] Status Update(const Values& changes);

 private:
  const std::function<void(const Values&)> apply_;
  mutable Mutex mu_;
  Values values_ GUARDED_BY(mu_);
};

// The trace extension's settings, global and per model; a model without a value of its own has the global one.
// Thread-safe.
class TraceSettings {
 public:
  using Values = std::map<std::string, std::vector<std::string>>;
  // nullopt: back to the default (globally) or to the global value (for a model).
  using Changes = std::map<std::string, std::optional<std::vector<std::string>>>;

  TraceSettings();

  // `model` empty: the global settings.
  [[nodiscard]] Values Get(const std::string& model) const;
  [[nodiscard]] Status Update(const std::string& model, const Changes& changes);

 private:
  mutable Mutex mu_;
  Values global_ GUARDED_BY(mu_);
  std::map<std::string, Values> models_ GUARDED_BY(mu_);
};

}  // namespace tandem
