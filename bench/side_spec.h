#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/json_fields.h"
#include "bench/peer_spec.h"

namespace tandem::bench {

enum class SideSource : std::uint8_t {
  kBare,          // ONNX Runtime in this process, in a loop on one thread.
  kTandem,        // `tandem serve`.
  kPeer,          // A peer of the scenario.
  kLoopback,      // Two threads that exchange as many bytes as the REST request and its answer have.
  kJsonDecoding,  // The server's decoder in this process, on the request in JSON.
};

enum class SideProtocol : std::uint8_t {
  kRestBinary,
  kRestJson,
  kGrpc,
  kRaw,  // POST of the input's bytes alone, to `path`.
};

// One side of a comparison as a file says it.
struct SideSpec {
  std::string name;
  SideSource source = SideSource::kBare;
  SideProtocol protocol = SideProtocol::kRestBinary;  // Of kTandem and kPeer.
  int workers = 0;                                    // Of kTandem: as --workers.
  std::string peer;                                   // Of kPeer.
  std::string path;                                   // Of kRaw.
  bool spinning = false;                              // Of kBare: threads poll when idle, as by default.
  std::size_t answer_bytes = 0;                       // Of kLoopback.

  // The names of its series: "rest.p50", "rest.rate".
  [[nodiscard]] std::vector<std::string> series() const;
};

[[nodiscard]] Result<SideSpec> ParseSide(JsonFields fields, const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
