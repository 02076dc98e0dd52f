#pragma once

namespace tandem::grpc_front {

// Puts a HeaderGuard ahead of gRPC's parser. gRPC has no place for one, so its two ways to read are taken over: this
// program's recvmsg() stands before the C library's, and its SSL_read() before OpenSSL's
// (docs/decisions/0009-grpc-header-guard.md). A client that goes too far is cut off.

// Follows what is read from `fd`, the socket of a client in plain text, until it is closed. Called by whoever accepted
// it, before gRPC has it. Thread-safe. Sessions over TLS need no such call: those that negotiated HTTP/2 as a server
// are followed.
void GuardReads(int fd);

}  // namespace tandem::grpc_front
