#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "loadgen/tls_client.h"

namespace tandem::loadgen {

enum class Scheme : std::uint8_t { kHttp, kHttps, kGrpc, kGrpcs };

// "http" and so on.
[[nodiscard]] std::string_view SchemeName(Scheme scheme);

inline constexpr std::array kPlainHttp{Scheme::kHttp};
inline constexpr std::array kHttpSchemes{Scheme::kHttp, Scheme::kHttps};
inline constexpr std::array kEveryScheme{Scheme::kHttp, Scheme::kHttps, Scheme::kGrpc, Scheme::kGrpcs};

// Where a server is asked, and how.
struct Target {
  Scheme scheme = Scheme::kHttp;
  std::string host;  // A name or an address, IPv6 without its brackets.
  int port = 8000;

  [[nodiscard]] bool tls() const { return scheme == Scheme::kHttps || scheme == Scheme::kGrpcs; }
  [[nodiscard]] bool grpc() const { return scheme == Scheme::kGrpc || scheme == Scheme::kGrpcs; }
};

// "http://host:port" with or without the port (8000; 8001 for grpc and grpcs) and a slash at the end; an IPv6 address
// stands in brackets. kInvalidArgument for anything else, and for a scheme that is not among `spoken`.
[[nodiscard]] Result<Target> ParseTarget(std::string_view url, std::span<const Scheme> spoken = kPlainHttp);

// A name as one segment of a path: everything but letters, digits and "-._~" is escaped.
[[nodiscard]] std::string PathSegment(std::string_view name);

struct Fetched {
  int status = 0;
  std::string body;
};

// One GET over HTTP on a connection of its own; blocks. `tls` counts for an https target only. The error says what went
// wrong between here and the server.
[[nodiscard]] Result<Fetched> Fetch(const Target& target, const std::string& path, std::chrono::nanoseconds timeout,
                                    const TlsClientOptions& tls = {});

}  // namespace tandem::loadgen
