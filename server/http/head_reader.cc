#include "server/http/head_reader.h"

#include <algorithm>
#include <array>
#include <format>

#include "api/base/format.h"
#include "server/http/text.h"

namespace tandem::http {
namespace {

template <typename... Args>
std::unexpected<ParseError> Refuse(int status, std::format_string<Args...> text, Args&&... args) {
  return std::unexpected(ParseError{status, Format(text, std::forward<Args>(args)...)});
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenChar);
}

bool IsHostChar(char c) {
  return IsDigit(c) || IsAlpha(c) || std::string_view("-._~!$&'()*+,;=%[]:").contains(c);
}

// RFC 3986, 3.2: a host and maybe a port.
bool IsAuthority(std::string_view text) {
  if (!std::ranges::all_of(text, IsHostChar)) return false;
  const std::size_t address_end = text.starts_with('[') ? text.find(']') : 0;
  if (address_end == std::string_view::npos) return false;
  const std::size_t colon = text.find(':', address_end);
  if (colon == std::string_view::npos) return true;
  const std::string_view port = text.substr(colon + 1);
  return port.size() <= 5 && std::ranges::all_of(port, IsDigit);
}

// Fields that have one meaning only when they occur once: two of them are an attempt to be read two ways.
constexpr std::array<std::string_view, 8> kSingletons = {"host",
                                                         "content-length",
                                                         "transfer-encoding",
                                                         "content-type",
                                                         "content-encoding",
                                                         "authorization",
                                                         "inference-header-content-length",
                                                         "x-slo-ms"};

}  // namespace

std::expected<FieldLine, ParseError> ParseFieldLine(std::string_view line) {
  if (IsBlank(line.front())) return Refuse(400, "a header line begins with white space");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Refuse(400, "header line {} has no colon", Quoted(line));
  const std::string_view name = line.substr(0, colon);
  if (!IsToken(name)) return Refuse(400, "header name {} is not a token", Quoted(name));
  return FieldLine{name, TrimBlanks(line.substr(colon + 1))};
}

HeadReader::HeadReader(const Limits& limits) : limits_(limits), budget_(limits.max_request_line + 2) {}

std::expected<bool, ParseError> HeadReader::Feed(std::string_view in, std::size_t& used) {
  while (true) {
    const LineReader::Step step = lines_.Feed(in, used, budget_, head_.text_);
    if (step == LineReader::Step::kMore) return false;
    if (step == LineReader::Step::kTooLong) return std::unexpected(TooLong());
    if (step != LineReader::Step::kLine) return std::unexpected(LineError(step));

    const std::string_view line = std::string_view(head_.text_).substr(line_begin_);
    Outcome outcome;
    if (!in_fields_) {
      if (line.empty() && !skipped_empty_line_) {
        skipped_empty_line_ = true;
        budget_ = limits_.max_request_line + 2;
        continue;
      }
      outcome = OnRequestLine(line);
      in_fields_ = true;
      budget_ = limits_.max_header_bytes;
    } else if (line.empty()) {
      outcome = OnEnd();
      if (outcome) return true;
    } else {
      outcome = OnField(line);
    }
    if (!outcome) return std::unexpected(std::move(outcome).error());
    line_begin_ = head_.text_.size();
  }
}

ParseError HeadReader::TooLong() const {
  if (!in_fields_) return {414, Format("the request line is longer than {} bytes", limits_.max_request_line)};
  return {431, Format("the header fields are longer than {} bytes", limits_.max_header_bytes)};
}

HeadReader::Outcome HeadReader::OnRequestLine(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return Refuse(400, "request line {} is not 'METHOD target HTTP/1.1'", Quoted(line));
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method)) return Refuse(400, "method {} is not a token", Quoted(method));
  if (target.empty() || !std::ranges::all_of(target, IsVisible) || target.contains('#')) {
    return Refuse(400, "request target {} is not a path of visible ASCII characters", Quoted(target));
  }
  if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) || version[6] != '.' ||
      !IsDigit(version[7])) {
    return Refuse(400, "version {} is not HTTP/1.1", Quoted(version));
  }
  if (version[5] != '1' || version[7] > '1') return Refuse(505, "version {} is not served: use HTTP/1.1", version);
  head_.minor_version_ = version[7] - '0';

  head_.method_ = ParseMethod(method);
  head_.method_name_ = PlaceOf(method);
  return OnTarget(target);
}

HeadReader::Outcome HeadReader::OnTarget(std::string_view target) {
  std::string_view rest = target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualsIgnoringCase(rest.substr(0, scheme.size()), scheme)) continue;
    rest.remove_prefix(scheme.size());
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
    if (authority.empty() || !IsAuthority(authority)) {
      return Refuse(400, "request target {} has no valid host", Quoted(target));
    }
    rest.remove_prefix(authority.size());
    // "http://host" and "http://host?q" have no path to point at; they name no resource of ours.
    if (!rest.starts_with('/')) return Refuse(400, "request target {} has no path", Quoted(target));
    break;
  }
  const bool asterisk = rest == "*" && head_.method_ == Method::kOptions;
  if (!rest.starts_with('/') && !asterisk) {
    return Refuse(400, "request target {} does not begin with '/'", Quoted(target));
  }
  const std::size_t question = rest.find('?');
  head_.path_ = PlaceOf(rest.substr(0, question));
  if (question != std::string_view::npos) head_.query_ = PlaceOf(rest.substr(question + 1));
  return {};
}

HeadReader::Outcome HeadReader::OnField(std::string_view line) {
  if (head_.fields_.size() >= limits_.max_headers) {
    return Refuse(431, "the request has more than {} header fields", limits_.max_headers);
  }
  auto field = ParseFieldLine(line);
  if (!field) return std::unexpected(std::move(field).error());
  const RequestHead::Field placed{PlaceOf(field->name), PlaceOf(field->value)};
  const auto name = head_.text_.begin() + placed.name.begin;
  std::transform(name, name + placed.name.size, name, ToLower);
  head_.fields_.push_back(placed);
  return {};
}

HeadReader::Outcome HeadReader::OnEnd() {
  if (auto outcome = CheckOnlyOnce(); !outcome) return outcome;
  if (auto outcome = CheckHost(); !outcome) return outcome;
  if (auto outcome = ReadConnectionAndExpect(); !outcome) return outcome;
  return ReadFraming();
}

HeadReader::Outcome HeadReader::CheckOnlyOnce() const {
  std::array<bool, kSingletons.size()> seen{};
  for (std::size_t i = 0; i < head_.header_count(); ++i) {
    const auto it = std::ranges::find(kSingletons, head_.HeaderName(i));
    if (it == kSingletons.end()) continue;
    bool& flag = seen[static_cast<std::size_t>(it - kSingletons.begin())];
    if (flag) return Refuse(400, "header '{}' is given more than once", *it);
    flag = true;
  }
  return {};
}

HeadReader::Outcome HeadReader::CheckHost() const {
  if (head_.minor_version_ == 1 && !head_.HasHeader("host")) return Refuse(400, "header 'host' is missing");
  const std::string_view host = head_.Header("host");
  if (!IsAuthority(host)) return Refuse(400, "header 'host' is {}", Quoted(host));
  return {};
}

HeadReader::Outcome HeadReader::ReadFraming() {
  const bool has_length = head_.HasHeader("content-length");
  if (head_.HasHeader("transfer-encoding")) {
    const std::string_view coding = head_.Header("transfer-encoding");
    if (has_length) return Refuse(400, "'content-length' stands beside 'transfer-encoding'");
    if (head_.minor_version_ == 0) return Refuse(400, "'transfer-encoding' is not part of HTTP/1.0");
    if (coding.empty()) return Refuse(400, "'transfer-encoding' is empty");
    if (!EqualsIgnoringCase(coding, "chunked")) {
      return Refuse(400, "transfer-encoding {} is not supported: only 'chunked' is", Quoted(coding));
    }
    framing_.chunked = true;
    return {};
  }
  if (!has_length) return {};
  const std::string_view text = head_.Header("content-length");
  framing_.content_length = ParseDecimal(text);
  if (!framing_.content_length) return Refuse(400, "content-length {} is not a number of bytes", Quoted(text));
  if (*framing_.content_length > limits_.max_body) {
    return Refuse(413, "content-length {} is above the limit of {} bytes", text, limits_.max_body);
  }
  return {};
}

HeadReader::Outcome HeadReader::ReadConnectionAndExpect() {
  bool close = false, keep_alive = false;
  for (std::size_t i = 0; i < head_.header_count(); ++i) {
    const std::string_view name = head_.HeaderName(i);
    std::string_view value = head_.HeaderValue(i);
    if (name == "expect" && head_.minor_version_ == 1) {
      if (!EqualsIgnoringCase(value, "100-continue")) return Refuse(417, "expectation {} is not known", Quoted(value));
      framing_.expect_continue = true;
    }
    if (name != "connection") continue;
    while (!value.empty()) {
      const std::size_t comma = std::min(value.find(','), value.size());
      const std::string_view option = TrimBlanks(value.substr(0, comma));
      close = close || EqualsIgnoringCase(option, "close");
      keep_alive = keep_alive || EqualsIgnoringCase(option, "keep-alive");
      value.remove_prefix(std::min(comma + 1, value.size()));
    }
  }
  head_.keep_alive_ = !close && (head_.minor_version_ == 1 || keep_alive);
  return {};
}

RequestHead::Place HeadReader::PlaceOf(std::string_view part) const {
  return {static_cast<std::uint32_t>(part.data() - head_.text_.data()), static_cast<std::uint32_t>(part.size())};
}

}  // namespace tandem::http
