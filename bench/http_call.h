#pragma once

#include <string>

#include "api/base/result.h"
#include "loadgen/socket_address.h"

namespace tandem::bench {

// One blocking GET on the loopback and the status of its answer, or why there is none. Waits a few seconds at most.
[[nodiscard]] Result<int> GetStatus(int port, const std::string& path);

// The same on a connection that is then left open and idle.
[[nodiscard]] Result<loadgen::Socket> GetAndStay(int port, const std::string& path);

// The server has neither closed the connection nor said anything on it.
[[nodiscard]] bool IsIdle(const loadgen::Socket& socket);

}  // namespace tandem::bench
