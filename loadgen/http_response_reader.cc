#include "loadgen/http_response_reader.h"

#include <algorithm>
#include <charconv>

namespace tandem::loadgen {
namespace {

constexpr std::size_t kMaxLineBytes = 64 << 10;
// Of a body that is kept and not taken: a server that never stops sending must not fill the memory.
constexpr std::size_t kMaxKeptBytes = std::size_t{2} << 30;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool SameText(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, Lower, Lower);
}

std::string_view Trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::uint64_t> ParseNumber(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void HttpResponseReader::Reset(bool keep_body) {
  started_ = false;
  keep_body_ = keep_body;
  body_bytes_ = 0;
  body_.clear();
  partial_.clear();
  BeginHead();
}

void HttpResponseReader::BeginHead() {
  phase_ = Phase::kStatusLine;
  status_ = 0;
  keep_alive_ = true;
  chunked_ = false;
  content_length_.reset();
  line_bytes_ = 0;
  headers_.clear();
}

std::optional<std::string_view> HttpResponseReader::Header(std::string_view name) const {
  std::string_view rest = headers_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const std::size_t colon = line.find(':');
    if (SameText(line.substr(0, colon), name)) return Trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

bool HttpResponseReader::has_head() const {
  return phase_ != Phase::kStatusLine && phase_ != Phase::kHeaders && phase_ != Phase::kMalformed;
}

std::size_t HttpResponseReader::Feed(std::string_view bytes) {
  const std::size_t given = bytes.size();
  if (given > 0) started_ = true;
  while (!bytes.empty() && !done() && !malformed()) {
    switch (phase_) {
      case Phase::kFixedBody:
      case Phase::kUntilClose:
      case Phase::kChunkData: TakeBody(bytes); break;
      default: TakeLine(bytes); break;
    }
  }
  return given - bytes.size();
}

void HttpResponseReader::Close() {
  if (phase_ == Phase::kUntilClose) phase_ = Phase::kDone;
}

void HttpResponseReader::TakeLine(std::string_view& bytes) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view piece = bytes.substr(0, newline);  // Whatever there is, when the line does not end here.
  line_bytes_ += piece.size() + 1;
  if (line_bytes_ > kMaxLineBytes) {
    phase_ = Phase::kMalformed;
    return;
  }
  bytes.remove_prefix(newline == std::string_view::npos ? bytes.size() : newline + 1);
  if (newline == std::string_view::npos) {
    partial_.append(piece);
    return;
  }
  std::string_view line = piece;
  if (!partial_.empty()) {
    partial_.append(piece);
    line = partial_;
  }
  if (line.ends_with('\r')) {
    phase_ = HandleLine(line.substr(0, line.size() - 1));
  } else {
    phase_ = Phase::kMalformed;
  }
  partial_.clear();
}

void HttpResponseReader::TakeBody(std::string_view& bytes) {
  std::string_view piece = bytes;
  if (phase_ != Phase::kUntilClose) {
    piece = bytes.substr(0, remaining_);
    remaining_ -= piece.size();
  }
  body_bytes_ += piece.size();
  if (keep_body_) {
    if (body_.size() + piece.size() > kMaxKeptBytes) {
      phase_ = Phase::kMalformed;
      return;
    }
    body_.append(piece);
  }
  bytes.remove_prefix(piece.size());
  if (phase_ != Phase::kUntilClose && remaining_ == 0) {
    phase_ = phase_ == Phase::kChunkData ? Phase::kChunkEnd : Phase::kDone;
  }
}

HttpResponseReader::Phase HttpResponseReader::HandleLine(std::string_view line) {
  switch (phase_) {
    case Phase::kStatusLine: return StatusLine(line);
    case Phase::kHeaders: return line.empty() ? HeadEnd() : HeaderLine(line);
    case Phase::kChunkSize: return ChunkSize(line);
    case Phase::kChunkEnd: return line.empty() ? Phase::kChunkSize : Phase::kMalformed;
    case Phase::kTrailers: return line.empty() ? Phase::kDone : Phase::kTrailers;
    default: return Phase::kMalformed;
  }
}

HttpResponseReader::Phase HttpResponseReader::StatusLine(std::string_view line) {
  // "HTTP/1.1 200 OK"; the reason may be absent.
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || line[8] != ' ') return Phase::kMalformed;
  if (line[7] != '0' && line[7] != '1') return Phase::kMalformed;
  if (line.size() > 12 && line[12] != ' ') return Phase::kMalformed;
  const auto status = ParseNumber(line.substr(9, 3), 10);
  if (!status || *status < 100) return Phase::kMalformed;
  status_ = static_cast<int>(*status);
  keep_alive_ = line[7] == '1';
  return Phase::kHeaders;
}

HttpResponseReader::Phase HttpResponseReader::HeaderLine(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return Phase::kMalformed;
  if (keep_body_) headers_.append(line).append(1, '\n');
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trim(line.substr(colon + 1));
  if (SameText(name, "content-length")) {
    const auto length = ParseNumber(value, 10);
    if (!length || (content_length_ && *content_length_ != *length)) return Phase::kMalformed;
    content_length_ = length;
  } else if (SameText(name, "transfer-encoding")) {
    if (chunked_ || !SameText(value, "chunked")) return Phase::kMalformed;
    chunked_ = true;
  } else if (SameText(name, "connection")) {
    if (SameText(value, "close")) keep_alive_ = false;
    if (SameText(value, "keep-alive")) keep_alive_ = true;
  }
  return Phase::kHeaders;
}

HttpResponseReader::Phase HttpResponseReader::HeadEnd() {
  if (chunked_ && content_length_) return Phase::kMalformed;
  if (status_ == 101) return Phase::kMalformed;
  if (status_ < 200) {
    BeginHead();
    return Phase::kStatusLine;
  }
  line_bytes_ = 0;
  if (status_ == 204 || status_ == 304) return Phase::kDone;
  if (chunked_) return Phase::kChunkSize;
  if (!content_length_) {
    keep_alive_ = false;
    return Phase::kUntilClose;
  }
  remaining_ = *content_length_;
  if (keep_body_) body_.reserve(std::min<std::uint64_t>(remaining_, 1 << 20));
  return remaining_ == 0 ? Phase::kDone : Phase::kFixedBody;
}

HttpResponseReader::Phase HttpResponseReader::ChunkSize(std::string_view line) {
  const auto size = ParseNumber(Trim(line.substr(0, line.find(';'))), 16);
  if (!size) return Phase::kMalformed;
  line_bytes_ = 0;
  remaining_ = *size;
  return remaining_ == 0 ? Phase::kTrailers : Phase::kChunkData;
}

}  // namespace tandem::loadgen
