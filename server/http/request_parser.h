#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "server/http/body_buffer.h"
#include "server/http/chunk_reader.h"
#include "server/http/head_reader.h"
#include "server/http/limits.h"
#include "server/http/request.h"

namespace tandem::http {

// Reads requests from a byte stream, strictly by RFC 9112; the outcome does not depend on how the stream is split. No
// I/O, no clock. One per connection, on the connection's thread. After kError it must not be fed again.
class RequestParser {
 public:
  enum class Event {
    kNeedMore,  // All bytes were taken.
    kHead,      // The head is complete and a body follows; feed on. head() and expects_continue() may be read.
    kComplete,  // A request is complete: Take() it, then feed the rest.
    kError,     // error() says why; the stream is lost.
  };

  // `limits` is borrowed from the server's options; `budget` may be null.
  RequestParser(const Limits& limits, std::shared_ptr<ByteBudget> budget);
  ~RequestParser();

  // Takes bytes from the front of `in`, adding to `used`, until something happened.
  [[nodiscard]] Event Feed(std::string_view in, std::size_t& used);

  // Where the next bytes of a large body may be read into without passing through Feed; empty when they may not.
  [[nodiscard]] std::span<std::byte> DirectRoom();
  // The first `n` > 0 bytes of DirectRoom() have been filled.
  [[nodiscard]] Event CommitDirect(std::size_t n);

  [[nodiscard]] std::size_t body_bytes() const { return body_ ? body_->buffer.size() : 0; }

  [[nodiscard]] const RequestHead& head() const { return head_; }
  [[nodiscard]] bool expects_continue() const { return framing_.expect_continue; }
  [[nodiscard]] const ParseError& error() const { return error_; }

  struct Taken {
    RequestHead head;
    Bytes body;
  };
  [[nodiscard]] Taken Take();

 private:
  // Only there while a body is read: an idle connection stays small.
  struct Body {
    Body(const Limits& limits, std::shared_ptr<ByteBudget> budget) : buffer(std::move(budget)), chunks(limits) {}
    BodyBuffer buffer;
    ChunkReader chunks;
    std::uint64_t left = 0;  // Of a body with Content-Length.
  };

  [[nodiscard]] Event FeedHead(std::string_view in, std::size_t& used);
  [[nodiscard]] Event FeedBody(std::string_view in, std::size_t& used);
  void BeginBody();
  [[nodiscard]] Event Complete();
  [[nodiscard]] Event Stop(ParseError error);

  const Limits& limits_;
  const std::shared_ptr<ByteBudget> budget_;  // Shared with every body that outlives its connection.
  std::unique_ptr<HeadReader> reader_;        // Only there while a head is read.
  std::unique_ptr<Body> body_;
  RequestHead head_;
  Bytes finished_body_;
  Framing framing_;
  ParseError error_;
};

}  // namespace tandem::http
