#include "server/http/chunk_reader.h"

#include <algorithm>
#include <cstring>
#include <format>

#include "api/base/format.h"
#include "server/http/head_reader.h"
#include "server/http/text.h"

namespace tandem::http {
namespace {

constexpr int kMaxSizeDigits = 16;
constexpr std::size_t kMaxExtensionBytes = 256;
// Chunks that a body may have whatever its size, and then one for so many bytes.
constexpr std::size_t kFreeChunks = 64 * 1024;
constexpr std::size_t kBytesPerChunk = 16;

template <typename... Args>
std::unexpected<ParseError> Refuse(int status, std::format_string<Args...> text, Args&&... args) {
  return std::unexpected(ParseError{status, Format(text, std::forward<Args>(args)...)});
}

}  // namespace

std::expected<bool, ParseError> ChunkReader::Feed(std::string_view in, std::size_t& used, BodyBuffer& body) {
  while (used < in.size() && state_ != State::kDone) {
    Outcome outcome;
    if (state_ == State::kData) {
      outcome = TakeData(in, used, body);
    } else if (state_ == State::kTrailers) {
      outcome = TakeTrailers(in, used);
    } else {
      outcome = OnFramingByte(in[used++], body);
    }
    if (!outcome) return std::unexpected(std::move(outcome).error());
  }
  return state_ == State::kDone;
}

ChunkReader::Outcome ChunkReader::OnSizeByte(char c) {
  if (const int value = HexValue(c); value >= 0) {
    if (++digits_ > kMaxSizeDigits) return Refuse(400, "a chunk size has more than {} digits", kMaxSizeDigits);
    chunk_left_ = chunk_left_ * 16 + static_cast<std::uint64_t>(value);
    return {};
  }
  const bool ends = c == '\r' || c == ';' || IsBlank(c);
  if (digits_ == 0 || !ends)
    return Refuse(400, "a chunk size has {} where a hexadecimal digit belongs", Quoted({&c, 1}));
  state_ = c == '\r' ? State::kSizeLf : c == ';' ? State::kExtension : State::kBlank;
  return {};
}

ChunkReader::Outcome ChunkReader::OnFramingByte(char c, const BodyBuffer& body) {
  if (state_ == State::kSize) return OnSizeByte(c);
  if (state_ == State::kBlank || state_ == State::kExtension) {
    if (++extension_bytes_ > kMaxExtensionBytes) {
      return Refuse(400, "a chunk extension is longer than {} bytes", kMaxExtensionBytes);
    }
    if (state_ == State::kBlank) {
      if (c == ';') state_ = State::kExtension;
      if (c != ';' && !IsBlank(c)) return Refuse(400, "a chunk size is followed by {}", Quoted({&c, 1}));
      return {};
    }
    if (c == '\r') state_ = State::kSizeLf;
    if (c != '\r' && !IsVisible(c) && !IsBlank(c)) return Refuse(400, "a chunk extension has an invalid character");
    return {};
  }
  if (state_ == State::kSizeLf) {
    if (c != '\n') return Refuse(400, "a chunk size line does not end in CRLF");
    return OnSize(body);
  }
  if (c != (state_ == State::kDataCr ? '\r' : '\n')) return Refuse(400, "a chunk is longer than its size says");
  state_ = state_ == State::kDataCr ? State::kDataLf : State::kSize;
  return {};
}

ChunkReader::Outcome ChunkReader::OnSize(const BodyBuffer& body) {
  digits_ = 0;
  extension_bytes_ = 0;
  if (chunk_left_ == 0) {
    state_ = State::kTrailers;
    return {};
  }
  if (chunk_left_ > limits_.max_body - body.size()) {
    return Refuse(413, "the chunks of the body are above the limit of {} bytes", limits_.max_body);
  }
  if (++chunks_ > kFreeChunks + body.size() / kBytesPerChunk) {
    return Refuse(400, "the body has too many small chunks: {} for {} bytes", chunks_, body.size());
  }
  state_ = State::kData;
  return {};
}

ChunkReader::Outcome ChunkReader::TakeData(std::string_view in, std::size_t& used, BodyBuffer& body) {
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_left_, in.size() - used));
  const std::span<std::byte> room = body.Room(wanted);
  if (room.empty()) return Refuse(503, "no memory is left for request bodies");
  std::memcpy(room.data(), in.data() + used, room.size());
  body.Commit(room.size());
  used += room.size();
  chunk_left_ -= room.size();
  if (chunk_left_ == 0) state_ = State::kDataCr;
  return {};
}

ChunkReader::Outcome ChunkReader::TakeTrailers(std::string_view in, std::size_t& used) {
  const LineReader::Step step = lines_.Feed(in, used, trailer_budget_, trailer_);
  if (step == LineReader::Step::kMore) return {};
  if (step == LineReader::Step::kTooLong) {
    return Refuse(431, "the trailers are longer than {} bytes", limits_.max_header_bytes);
  }
  if (step != LineReader::Step::kLine) return std::unexpected(LineError(step));
  if (trailer_.empty()) {
    state_ = State::kDone;
    return {};
  }
  if (++trailers_ > limits_.max_headers)
    return Refuse(431, "the request has more than {} trailers", limits_.max_headers);
  if (auto field = ParseFieldLine(trailer_); !field) return std::unexpected(std::move(field).error());
  trailer_.clear();
  return {};
}

}  // namespace tandem::http
