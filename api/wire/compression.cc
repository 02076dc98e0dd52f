#include "api/wire/compression.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include <zlib.h>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

constexpr std::size_t kSlack = 64;
constexpr std::size_t kFirstBuffer = 64 * 1024;
constexpr int kLevel = 1;

// Values of zlib's windowBits.
constexpr int kZlib = 15;
constexpr int kRaw = -15;
constexpr int kGzip = 15 + 16;

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};
struct DeflateEnd {
  void operator()(z_stream* stream) const { deflateEnd(stream); }
};

Bytef* Input(std::span<const std::byte> bytes) {
  // zlib's interface predates const; it does not write to its input.
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

uInt Piece(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

// Output that doubles as it fills, up to one byte past the limit: that byte shows that the limit is too small.
class GrowingOutput {
 public:
  GrowingOutput(std::size_t guess, std::size_t limit, std::shared_ptr<ByteBudget> budget)
      : guess_(std::max(guess, kFirstBuffer)), limit_(limit), budget_(std::move(budget)) {}

  // Where to write on; empty when the budget has no room.
  [[nodiscard]] std::span<std::byte> Free() {
    if (used_ == capacity() && !Grow()) return {};
    return buffer_.span().subspan(used_, capacity() - used_);
  }
  void Use(std::size_t bytes) { used_ += bytes; }
  [[nodiscard]] bool TooLarge() const { return used_ > limit_; }

  [[nodiscard]] Bytes Take() {
    std::memset(buffer_.data() + used_, 0, kSlack);
    return OwnShared(std::move(buffer_), std::move(share_)).Part(0, used_);
  }

 private:
  [[nodiscard]] std::size_t capacity() const { return buffer_.size() - std::min(buffer_.size(), kSlack); }

  [[nodiscard]] bool Grow() {
    const std::size_t size = std::min(std::max(capacity() * 2, guess_), limit_ + 1) + kSlack;
    BudgetShare share(budget_);
    if (!share.Take(size)) return false;
    AlignedBuffer larger(size);
    if (used_ > 0) std::memcpy(larger.data(), buffer_.data(), used_);
    buffer_ = std::move(larger);
    share_ = std::move(share);
    return true;
  }

  const std::size_t guess_;
  const std::size_t limit_;
  const std::shared_ptr<ByteBudget> budget_;
  BudgetShare share_;  // For buffer_.
  AlignedBuffer buffer_;
  std::size_t used_ = 0;
};

Result<Bytes> InflateAs(std::span<const std::byte> packed, int window_bits, std::string_view encoding,
                        std::size_t max_output, const std::shared_ptr<ByteBudget>& budget) {
  z_stream stream{};
  if (inflateInit2(&stream, window_bits) != Z_OK) return Fail(ErrorCode::kInternal, "zlib could not be initialised");
  const std::unique_ptr<z_stream, InflateEnd> end(&stream);
  GrowingOutput output(packed.size() * 4, max_output, budget);
  std::span<const std::byte> left = packed;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    const std::span<std::byte> free = output.Free();
    if (free.empty()) return NoRoomInBudget();
    stream.next_in = Input(left);
    stream.avail_in = Piece(left.size());
    stream.next_out = reinterpret_cast<Bytef*>(free.data());
    stream.avail_out = Piece(free.size());
    const uInt offered_in = stream.avail_in;
    const uInt offered_out = stream.avail_out;
    code = inflate(&stream, Z_NO_FLUSH);
    left = left.subspan(offered_in - stream.avail_in);
    output.Use(offered_out - stream.avail_out);
    if (output.TooLarge()) {
      return Fail(ErrorCode::kTooLarge, "the {} body unpacks to more than {} bytes", encoding, max_output);
    }
    if (code == Z_BUF_ERROR) return Invalid("the {} body is cut off after {} bytes", encoding, packed.size());
    if (code == Z_MEM_ERROR) return Fail(ErrorCode::kUnavailable, "not enough memory to unpack the {} body", encoding);
    if (code != Z_OK && code != Z_STREAM_END) {
      return Invalid("the {} body is corrupt near byte {}: {}", encoding, packed.size() - left.size(),
                     stream.msg != nullptr ? stream.msg : "unexpected data");
    }
  }
  if (!left.empty()) return Invalid("the {} body is followed by {} surplus bytes", encoding, left.size());
  return output.Take();
}

bool LooksLikeZlib(std::span<const std::byte> packed) {
  if (packed.size() < 2) return false;
  const auto cmf = std::to_integer<unsigned>(packed[0]);
  const auto flags = std::to_integer<unsigned>(packed[1]);
  return (cmf & 0x0F) == Z_DEFLATED && (cmf >> 4) <= 7 && (cmf * 256 + flags) % 31 == 0;
}

std::unexpected<Error> UnknownEncoding(std::string_view encoding) {
  return Fail(ErrorCode::kInvalidArgument, "content encoding '{}' is not known: use gzip or deflate",
              Excerpt(encoding));
}

}  // namespace

bool IsKnownEncoding(std::string_view encoding) {
  return encoding == "gzip" || encoding == "deflate";
}

Result<Bytes> Inflate(std::span<const std::byte> packed, std::string_view encoding, std::size_t max_output,
                      const std::shared_ptr<ByteBudget>& budget) {
  if (!IsKnownEncoding(encoding)) return UnknownEncoding(encoding);
  max_output = std::min(max_output, std::numeric_limits<std::size_t>::max() / 4);
  if (encoding == "gzip") return InflateAs(packed, kGzip, encoding, max_output, budget);
  if (!LooksLikeZlib(packed)) return InflateAs(packed, kRaw, encoding, max_output, budget);
  auto result = InflateAs(packed, kZlib, encoding, max_output, budget);
  if (result || result.error().code != ErrorCode::kInvalidArgument) return result;
  // A raw stream can begin with two bytes that look like a zlib header.
  auto raw = InflateAs(packed, kRaw, encoding, max_output, budget);
  return raw ? std::move(raw) : std::move(result);
}

Result<std::string> Deflate(std::span<const std::span<const std::byte>> parts, std::string_view encoding) {
  if (!IsKnownEncoding(encoding)) return UnknownEncoding(encoding);
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, encoding == "gzip" ? kGzip : kZlib, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Fail(ErrorCode::kInternal, "zlib could not be initialised");
  }
  const std::unique_ptr<z_stream, DeflateEnd> end(&stream);
  std::size_t total = 0;
  for (const auto part : parts) total += part.size();
  std::string packed;
  packed.resize(deflateBound(&stream, total));
  std::size_t used = 0;
  // One call per part and per 4 GiB of it; deflateBound leaves room for the whole.
  const auto run = [&](std::span<const std::byte> bytes, int flush) {
    stream.next_in = Input(bytes);
    stream.avail_in = static_cast<uInt>(bytes.size());
    int code = Z_OK;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(packed.data() + used);
      stream.avail_out = Piece(packed.size() - used);
      const uInt offered = stream.avail_out;
      code = deflate(&stream, flush);
      used += offered - stream.avail_out;
    } while (code == Z_OK && (stream.avail_in > 0 || flush == Z_FINISH));
    return code;
  };
  for (auto part : parts) {
    while (!part.empty()) {
      const std::size_t size = Piece(part.size());
      if (run(part.first(size), Z_NO_FLUSH) != Z_OK) return Fail(ErrorCode::kInternal, "zlib failed to pack an answer");
      part = part.subspan(size);
    }
  }
  if (run({}, Z_FINISH) != Z_STREAM_END) return Fail(ErrorCode::kInternal, "zlib failed to pack an answer");
  packed.resize(used);
  return packed;
}

}  // namespace tandem
