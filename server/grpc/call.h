#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "api/base/clock.h"

// What stands between gRPC and the code that answers: neither side includes the other's headers.
namespace tandem::grpc_front {

// One call as its handler sees it. Thread-safe, but for two reads or two writes at once. Lives until Finish() or
// Answer() was called, exactly once, and everything that was begun has come back: a handler that has not finished its
// call may use it, and one that has must not.
class Call {
 public:
  // The first header of that name.
  [[nodiscard]] virtual std::optional<std::string_view> Header(std::string_view name) const = 0;
  // Until the client's deadline; none when it has none, or one too far away to matter.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> TimeLeft() const = 0;
  // When the message was there that OnRead() is being told of; it may have waited since.
  [[nodiscard]] virtual MonotonicTime MessageTime() const = 0;
  // For the client, in the initial metadata. Before the first Write(), Answer() or Finish().
  virtual void AddHeader(const std::string& name, const std::string& value) = 0;
  // The same, in the trailing metadata. Before Answer() or Finish().
  virtual void AddTrailer(const std::string& name, const std::string& value) = 0;
  // How to pack what is written. Before the first Write() or Answer().
  virtual void Pack(grpc_compression_algorithm algorithm) = 0;

  // Each is followed by the handler's OnRead(), OnWritten() or OnWake().
  virtual void Read() = 0;
  virtual void Write(const grpc::ByteBuffer& message) = 0;
  virtual void WakeIn(std::chrono::milliseconds time) = 0;

  virtual void Finish(const grpc::Status& status) = 0;
  // The last message and success, in one piece.
  virtual void Answer(const grpc::ByteBuffer& message) = 0;

 protected:
  ~Call() = default;
};

// Answers one call. Called on a loop's thread, OnRead() of a large message on another; destroyed when the call is.
class CallHandler {
 public:
  virtual ~CallHandler() = default;

  virtual void Start() = 0;
  // Not `ok`: there is no message, and no other will come.
  virtual void OnRead(bool ok, grpc::ByteBuffer& message) = 0;
  virtual void OnWritten(bool /*ok*/) {}
  virtual void OnWake() {}
  // The client has cancelled or vanished, its deadline has passed, or the call was given up because no message came.
  // The handler must still finish the call. Best effort: one that is finishing it meanwhile may hear of it or not.
  virtual void OnGone() {}
};

// How calls of one method are answered.
struct Route {
  bool open = false;     // To callers without a token.
  bool lasting = false;  // Such calls go on until their client ends them.
  std::function<std::shared_ptr<CallHandler>(Call& call)> make;
};

// By full method name: "/package.Service/Method".
using Routes = std::unordered_map<std::string, Route>;

}  // namespace tandem::grpc_front
