#pragma once

#include <string_view>

#include "server/core/settings.h"
#include "server/lifecycle/serve_options.h"

namespace tandem {

// For http::SetTransportLog: the network library's own warnings, which strangers can cause. Thread-safe.
void LogTransport(std::string_view text);

// Makes the log as the logging extension's settings say. Thread-safe.
void ApplyLogSettings(const LogSettings::Values& values);

// What the options have set up, as such settings.
[[nodiscard]] LogSettings::Values InitialLogSettings(const ServeOptions& options);

}  // namespace tandem
