#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/result.h"

namespace tandem::loadgen {

// Where a server is asked.
struct Target {
  std::string host;
  int port = 8000;
};

// "http://host:port", with or without the scheme, the port (8000) and a slash at the end. kInvalidArgument for anything
// else, and for https and grpc, which it names.
[[nodiscard]] Result<Target> ParseTarget(std::string_view url);

struct Fetched {
  int status = 0;
  std::string body;
};

// One GET over a connection of its own; blocks. The error says what went wrong between here and the server.
[[nodiscard]] Result<Fetched> Fetch(const Target& target, const std::string& path, std::chrono::nanoseconds timeout);

}  // namespace tandem::loadgen
