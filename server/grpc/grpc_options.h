#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/tls.h"

namespace tandem {

// How the gRPC front end listens and how much it takes from strangers.
struct GrpcOptions {
  std::string address = "127.0.0.1";
  int port = 8001;  // 0: one that is free; see GrpcServer::port().

  std::optional<http::TlsOptions> tls;  // With a client CA: clients must show a certificate.
  // Says whether the value of the `authorization` header, empty when there is none, lets a call in. Called from any
  // thread, several at once. Unset: everyone is let in. Health, liveness and readiness are always open, and so is
  // reflection, which tells nothing but the published protocol.
  std::function<bool(std::string_view authorization)> allows;

  std::size_t max_message_bytes = std::size_t{256} << 20;          // Of a request, also once decompressed.
  std::size_t memory_quota_bytes = std::size_t{2} << 30;           // What gRPC may hold in buffers for all connections.
  std::size_t max_request_bytes_under_way = std::size_t{2} << 30;  // All requests that are being worked on.
  std::size_t max_answer_bytes_under_way = std::size_t{2} << 30;   // All answers that clients have not taken.
  std::size_t max_metadata_bytes = 8 * 1024;                       // Of a call, counted as HTTP/2 does.
  int max_connections = 16'384;
  int max_streams_per_connection = 1'024;
  std::size_t max_calls = 16'384;            // Over all connections; more are turned away.
  std::size_t max_open_calls = 1'024;        // Of these, to methods that need no token,
  std::size_t max_open_lasting_calls = 256;  // and to Watch and reflection, which end when their clients like.
  // ModelStreamInfer: reading pauses at so many unanswered requests, or bytes that the client has not taken.
  std::size_t max_outstanding_per_stream = 64;
  std::size_t max_unsent_bytes_per_stream = std::size_t{64} << 20;

  int threads = 0;  // That serve connections and calls; 0: as many as the machine needs.
  // How long such a thread looks for the next event before it sleeps. Zero: not at all.
  std::chrono::nanoseconds poll_window{std::chrono::microseconds(100)};

  std::chrono::milliseconds handshake_timeout{10'000};
  // From a call's beginning to the end of its first message: a tensor may take a while, a name does not.
  std::chrono::milliseconds first_message_timeout{120'000};
  std::chrono::milliseconds open_first_message_timeout{10'000};
  // For a client to take an answer, or one message of a stream, from when it is sent: gRPC does not say how much of it
  // has gone.
  std::chrono::milliseconds answer_timeout{120'000};
  std::chrono::milliseconds keepalive_interval{60'000};  // Connections whose peer stays silent are closed.
  std::chrono::milliseconds keepalive_timeout{20'000};
  std::chrono::milliseconds min_client_ping_interval{1'000};  // Clients that ping more often are told to go.
};

}  // namespace tandem
