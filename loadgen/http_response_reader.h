#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tandem::loadgen {

// Reads one HTTP/1.x answer from bytes as they come, in pieces of any size. Strict in framing, indifferent to all other
// headers. Used by one thread; Reset() before each answer.
class HttpResponseReader {
 public:
  // `keep_body` keeps the body for body() and TakePiece(), and the headers for Header().
  void Reset(bool keep_body);

  // Takes bytes and returns how many belong to this answer: all of them unless it is complete or malformed.
  std::size_t Feed(std::string_view bytes);
  // The peer has closed: completes a body that ends with the connection.
  void Close();

  [[nodiscard]] bool done() const { return phase_ == Phase::kDone; }
  [[nodiscard]] bool malformed() const { return phase_ == Phase::kMalformed; }
  [[nodiscard]] bool started() const { return started_; }

  // The head has been read whole: status() and Header() are those of the answer.
  [[nodiscard]] bool has_head() const;
  // What has come of the body since the last call, without the framing. Bodies that are taken so may be of any length.
  [[nodiscard]] std::string TakePiece() { return std::exchange(body_, {}); }

  // Once done.
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::uint64_t body_bytes() const { return body_bytes_; }
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }
  [[nodiscard]] std::string& body() { return body_; }
  // The first header of that name, or nothing. Lives as long as the answer.
  [[nodiscard]] std::optional<std::string_view> Header(std::string_view name) const;

 private:
  enum class Phase : std::uint8_t {
    kStatusLine,
    kHeaders,
    kFixedBody,
    kUntilClose,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailers,
    kDone,
    kMalformed,
  };

  void BeginHead();
  void TakeLine(std::string_view& bytes);
  void TakeBody(std::string_view& bytes);
  [[nodiscard]] Phase HandleLine(std::string_view line);
  [[nodiscard]] Phase StatusLine(std::string_view line);
  [[nodiscard]] Phase HeaderLine(std::string_view line);
  [[nodiscard]] Phase HeadEnd();
  [[nodiscard]] Phase ChunkSize(std::string_view line);

  Phase phase_ = Phase::kStatusLine;
  bool started_ = false;
  bool keep_body_ = false;
  int status_ = 0;
  bool keep_alive_ = true;
  bool chunked_ = false;
  std::optional<std::uint64_t> content_length_;
  std::uint64_t remaining_ = 0;
  std::uint64_t body_bytes_ = 0;
  std::size_t line_bytes_ = 0;  // Of the head, the trailers or one chunk line; bounded.
  std::string partial_;         // A line that has not ended yet.
  std::string headers_;         // The lines, each with its end; only when kept.
  std::string body_;
};

}  // namespace tandem::loadgen
