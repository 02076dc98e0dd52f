#include "server/http/request_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "server/http/text.h"

namespace tandem::http {
namespace {

// Below this a detour through the loop's buffer is cheaper than a read of its own.
constexpr std::uint64_t kDirectMinimum = 16 * 1024;

ParseError OutOfMemory() {
  return {503, "no memory is left for request bodies"};
}

}  // namespace

RequestParser::RequestParser(const Limits& limits, std::shared_ptr<ByteBudget> budget)
    : limits_(limits), budget_(std::move(budget)) {}

RequestParser::~RequestParser() = default;

RequestParser::Event RequestParser::Feed(std::string_view in, std::size_t& used) {
  if (used == in.size()) return Event::kNeedMore;
  return body_ ? FeedBody(in, used) : FeedHead(in, used);
}

RequestParser::Event RequestParser::FeedHead(std::string_view in, std::size_t& used) {
  if (!reader_) reader_ = std::make_unique<HeadReader>(limits_);
  auto complete = reader_->Feed(in, used);
  if (!complete) return Stop(std::move(complete).error());
  if (!*complete) return Event::kNeedMore;
  framing_ = reader_->framing();
  head_ = reader_->Take();
  reader_.reset();
  if (!framing_.has_body()) return Event::kComplete;
  BeginBody();
  return Event::kHead;
}

void RequestParser::BeginBody() {
  body_ = std::make_unique<Body>(limits_, budget_);
  body_->left = framing_.content_length.value_or(0);
  // The tensors of a binary request begin where its JSON ends. A wrong length is refused later, by who reads the body.
  const std::uint64_t json = ParseDecimal(head_.Header("inference-header-content-length")).value_or(0);
  const bool plausible = json <= (framing_.chunked ? limits_.max_body : body_->left);
  body_->buffer.Prepare(static_cast<std::size_t>(body_->left), plausible ? static_cast<std::size_t>(json) : 0);
}

RequestParser::Event RequestParser::FeedBody(std::string_view in, std::size_t& used) {
  if (framing_.chunked) {
    auto complete = body_->chunks.Feed(in, used, body_->buffer);
    if (!complete) return Stop(std::move(complete).error());
    return *complete ? Complete() : Event::kNeedMore;
  }
  while (used < in.size()) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(body_->left, in.size() - used));
    const std::span<std::byte> room = body_->buffer.Room(wanted, wanted);
    if (room.empty()) return Stop(OutOfMemory());
    std::memcpy(room.data(), in.data() + used, room.size());
    used += room.size();
    body_->buffer.Commit(room.size());
    body_->left -= room.size();
    if (body_->left == 0) return Complete();
  }
  return Event::kNeedMore;
}

std::span<std::byte> RequestParser::DirectRoom() {
  if (!body_ || framing_.chunked || body_->left < kDirectMinimum) return {};
  return body_->buffer.Room(static_cast<std::size_t>(body_->left));
}

RequestParser::Event RequestParser::CommitDirect(std::size_t n) {
  body_->buffer.Commit(n);
  body_->left -= n;
  return body_->left == 0 ? Complete() : Event::kNeedMore;
}

RequestParser::Event RequestParser::Complete() {
  finished_body_ = body_->buffer.Finish();
  body_.reset();
  return Event::kComplete;
}

RequestParser::Event RequestParser::Stop(ParseError error) {
  error_ = std::move(error);
  reader_.reset();
  body_.reset();
  return Event::kError;
}

RequestParser::Taken RequestParser::Take() {
  return {std::exchange(head_, {}), std::exchange(finished_body_, {})};
}

}  // namespace tandem::http
