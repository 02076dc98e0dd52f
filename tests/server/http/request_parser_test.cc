#include "server/http/request_parser.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/base/format.h"

namespace tandem::http {
namespace {

// All that a stream of bytes led to: one line per event, and the error that ended it.
struct Reading {
  std::vector<std::string> requests;  // "POST /a [body]"
  int continues = 0;
  int status = 0;  // Of the error; 0: none.

  friend bool operator==(const Reading&, const Reading&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Reading& r) {
    for (const std::string& request : r.requests) out << request << "; ";
    return out << "continues " << r.continues << ", status " << r.status;
  }
};

Limits SmallLimits() {
  return {.max_request_line = 64, .max_header_bytes = 256, .max_headers = 5, .max_body = 100};
}

// Feeds the pieces one after the other.
Reading Read(const std::vector<std::string>& pieces, const Limits& limits) {
  Reading reading;
  RequestParser parser(limits, nullptr);
  for (const std::string& piece : pieces) {
    std::size_t used = 0;
    while (used < piece.size()) {
      switch (parser.Feed(piece, used)) {
        case RequestParser::Event::kNeedMore: break;
        case RequestParser::Event::kHead: reading.continues += parser.expects_continue() ? 1 : 0; break;
        case RequestParser::Event::kComplete: {
          const RequestParser::Taken taken = parser.Take();
          reading.requests.push_back(Format(
              "{} {}{} [{}]", taken.head.method_name(), taken.head.path(), taken.head.keep_alive() ? "" : " close",
              std::string_view(reinterpret_cast<const char*>(taken.body.view.data()), taken.body.size())));
          break;
        }
        case RequestParser::Event::kError:
          reading.status = parser.error().status;
          EXPECT_FALSE(parser.error().message.empty());
          EXPECT_LT(parser.error().message.size(), 300u);
          return reading;
      }
    }
  }
  return reading;
}

std::vector<std::string> SingleBytes(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}

// The reading of the whole, checked to be the same byte by byte and at every split into two.
Reading ReadEveryWay(const std::string& text, const Limits& limits = SmallLimits()) {
  const Reading whole = Read({text}, limits);
  EXPECT_EQ(Read(SingleBytes(text), limits), whole) << "byte by byte: " << text;
  for (std::size_t i = 1; i < text.size(); ++i) {
    EXPECT_EQ(Read({text.substr(0, i), text.substr(i)}, limits), whole) << "split at " << i << ": " << text;
  }
  return whole;
}

std::string Get(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}
std::string Chunked(const std::string& body) {
  return "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
}

struct Case {
  std::string text;
  int status;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << ::testing::PrintToString(c.text) << " is " << c.status;
}

class RefusedRequest : public ::testing::TestWithParam<Case> {};

TEST_P(RefusedRequest, HasItsStatusHoweverItIsSplit) {
  const Reading reading = ReadEveryWay(GetParam().text);
  EXPECT_EQ(reading.status, GetParam().status) << GetParam().text;
  EXPECT_TRUE(reading.requests.empty()) << GetParam().text;
}

const std::string kNul(1, '\0');

INSTANTIATE_TEST_SUITE_P(
    RequestLine, RefusedRequest,
    ::testing::Values(
        Case{"GET /\r\n\r\n", 400}, Case{"GET  / HTTP/1.1\r\n", 400}, Case{"GET / HTTP/1.1 \r\n", 400},
        Case{" GET / HTTP/1.1\r\n", 400}, Case{"GET\t/\tHTTP/1.1\r\n", 400}, Case{"GET / /x HTTP/1.1\r\n", 400},
        Case{"G(T / HTTP/1.1\r\n", 400}, Case{"CONNECT x:1 HTTP/1.1\r\n", 400}, Case{"GET x HTTP/1.1\r\n", 400},
        Case{"GET * HTTP/1.1\r\n", 400}, Case{"GET ftp://x/ HTTP/1.1\r\n", 400}, Case{"GET http:/// HTTP/1.1\r\n", 400},
        Case{"GET http://a@b/ HTTP/1.1\r\n", 400}, Case{"GET /#a HTTP/1.1\r\n", 400},
        Case{"GET /\xc3\xbc HTTP/1.1\r\n", 400}, Case{"GET /" + kNul + " HTTP/1.1\r\n", 400},
        Case{"GET /\x7f HTTP/1.1\r\n", 400}, Case{"GET / HTTP/1.2\r\n", 505}, Case{"GET / HTTP/2.0\r\n", 505},
        Case{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505}, Case{"GET / HTTP/0.9\r\n", 505}, Case{"GET / http/1.1\r\n", 400},
        Case{"GET / HTTP/1.10\r\n", 400}, Case{"GET / HTTP/1\r\n", 400}, Case{"GET / HTTP/+1.1\r\n", 400},
        Case{"GET / XTTP/1.1\r\n", 400}, Case{"\r\n\r\nGET / HTTP/1.1\r\n", 400}, Case{"GET / HTTP/1.1\n", 400},
        Case{"GET / HTTP/1.1\rX", 400}, Case{"GET / HTTP/1.1\r\r\n", 400}, Case{"\x16\x03\x01", 400}, Case{"\n", 400},
        Case{"GET /" + std::string(70, 'a'), 414}, Case{"GET /" + std::string(60, 'a') + " HTTP/1.1\r\n", 414},
        Case{std::string(80, 'A'), 414}));

INSTANTIATE_TEST_SUITE_P(
    Fields, RefusedRequest,
    ::testing::Values(
        Case{"GET / HTTP/1.1\r\n\r\n", 400}, Case{Get("Host: x\r\n"), 400}, Case{Get("hOST: y\r\n"), 400},
        Case{"GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", 400}, Case{"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400}, Case{"GET / HTTP/1.1\r\nHost: a:99999x\r\n\r\n", 400},
        Case{"GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", 400}, Case{"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400},
        Case{Get("A : b\r\n"), 400}, Case{Get("A\t: b\r\n"), 400}, Case{Get(" A: b\r\n"), 400},
        Case{Get("A: b\r\n c\r\n"), 400}, Case{Get("A: b\r\n\tc\r\n"), 400}, Case{Get("A\r\n"), 400},
        Case{Get(": b\r\n"), 400}, Case{Get("A(: b\r\n"), 400}, Case{Get("\xc3\xa4: b\r\n"), 400},
        Case{Get("A: b\nB: c\r\n"), 400}, Case{Get("A: b\rB: c\r\n"), 400}, Case{Get("A: b" + kNul + "\r\n"), 400},
        Case{Get("A: \x01\r\n"), 400}, Case{Get("A: \x7f\r\n"), 400}, Case{Get("A: b\r\r\n"), 400},
        Case{Get("Expect: 200-ok\r\n"), 417}, Case{Get("Expect:\r\n"), 417},
        Case{Get("Content-Type: a\r\nContent-Type: b\r\n"), 400},
        Case{Get("Authorization: a\r\nAuthorization: a\r\n"), 400},
        Case{Get("Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 2\r\n"), 400},
        Case{Get("A: " + std::string(260, 'b') + "\r\n"), 431}, Case{Get("A: " + std::string(260, 'b')), 431},
        Case{Get("A: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n"), 431}));

INSTANTIATE_TEST_SUITE_P(
    Framing, RefusedRequest,
    ::testing::Values(
        Case{Get("Content-Length: 10abc\r\n"), 400}, Case{Get("Content-Length: -1\r\n"), 400},
        Case{Get("Content-Length: +1\r\n"), 400}, Case{Get("Content-Length: 0x10\r\n"), 400},
        Case{Get("Content-Length:\r\n"), 400}, Case{Get("Content-Length: 1 1\r\n"), 400},
        Case{Get("Content-Length: 5, 5\r\n"), 400}, Case{Get("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
        Case{Get("Content-Length: 1.5\r\n"), 400}, Case{Get("Content-Length: 99999999999999999999\r\n"), 400},
        Case{Get("Content-Length: 18446744073709551617\r\n"), 400}, Case{Get("Content-Length: 101\r\n"), 413},
        Case{Get("Content-Length: 9223372036854775807\r\n"), 413},
        Case{Get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400},
        Case{Get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400},
        Case{Get("Transfer-Encoding: gzip, chunked\r\n"), 400},
        Case{Get("Transfer-Encoding: chunked, chunked\r\n"), 400}, Case{Get("Transfer-Encoding: identity\r\n"), 400},
        Case{Get("Transfer-Encoding: xchunked\r\n"), 400}, Case{Get("Transfer-Encoding:\r\n"), 400},
        Case{Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
        Case{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400}));

INSTANTIATE_TEST_SUITE_P(
    Chunks, RefusedRequest,
    ::testing::Values(Case{Chunked("2\r\nab\r\n-2\r\nX"), 400}, Case{Chunked("-1\r\n"), 400},
                      Case{Chunked("+1\r\n"), 400}, Case{Chunked("0x1\r\na\r\n"), 400}, Case{Chunked("\r\n"), 400},
                      Case{Chunked("g\r\n"), 400}, Case{Chunked(" 1\r\na\r\n"), 400}, Case{Chunked("1 \r\na\r\n"), 400},
                      Case{Chunked("1 x\r\na\r\n"), 400}, Case{Chunked("1\na\r\n"), 400}, Case{Chunked("1\rX"), 400},
                      Case{Chunked("1\r\nab\r\n"), 400}, Case{Chunked("1\r\na\n"), 400},
                      Case{Chunked("1\r\na\rX"), 400}, Case{Chunked("11111111111111111\r\n"), 400},
                      Case{Chunked("00000000000000001\r\n"), 400}, Case{Chunked("ffffffffffffffff\r\n"), 413},
                      Case{Chunked("65\r\n"), 413}, Case{Chunked("32\r\n" + std::string(50, 'a') + "\r\n33\r\n"), 413},
                      Case{Chunked("1;" + std::string(300, 'a') + "\r\n"), 400}, Case{Chunked("1;a\x01\r\n"), 400},
                      Case{Chunked("1;a\nb\r\n"), 400}, Case{Chunked("0\r\nA\r\n\r\n"), 400},
                      Case{Chunked("0\r\n A: b\r\n\r\n"), 400}, Case{Chunked("0\r\nA : b\r\n\r\n"), 400},
                      Case{Chunked("0\r\nA: b\n\r\n"), 400}, Case{Chunked("0\r\nA: " + std::string(260, 'b')), 431},
                      Case{Chunked("0\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\n"), 431}));

using Requests = std::vector<std::string>;

TEST(RequestParser, ReadsARequestWithoutBody) {
  EXPECT_EQ(ReadEveryWay(Get("")).requests, Requests{"GET / []"});
  EXPECT_EQ(ReadEveryWay("\r\n" + Get("")).requests, Requests{"GET / []"});
  EXPECT_EQ(ReadEveryWay("POST /a?b=c HTTP/1.1\r\nHost:\r\n\r\n").requests, Requests{"POST /a []"});
  EXPECT_EQ(ReadEveryWay("POST /a HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n").requests, Requests{"POST /a []"});
  EXPECT_EQ(ReadEveryWay("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").requests, Requests{"OPTIONS * []"});
}

TEST(RequestParser, ReadsBodiesOfEitherFraming) {
  EXPECT_EQ(ReadEveryWay(Get("Content-Length: 5\r\n") + "hello").requests, Requests{"GET / [hello]"});
  EXPECT_EQ(ReadEveryWay(Get("content-length:\t005 \r\n") + "hello").requests, Requests{"GET / [hello]"});
  EXPECT_EQ(ReadEveryWay(Get("Content-Length: 0\r\n")).requests, Requests{"GET / []"});
  EXPECT_EQ(ReadEveryWay(Chunked("5\r\nhello\r\n1;a=b;c=\"d e\"\r\n,\r\n0A ;x\r\n0123456789\r\n0\r\n\r\n")).requests,
            Requests{"POST / [hello,0123456789]"});
  EXPECT_EQ(ReadEveryWay(Chunked("000\r\nA: b\r\nContent-Length: 7\r\n\r\n")).requests, Requests{"POST / []"});
  EXPECT_EQ(ReadEveryWay(Get("Transfer-Encoding: ChunkeD\r\n") + "1\r\na\r\n0\r\n\r\n").requests,
            Requests{"GET / [a]"});
}

TEST(RequestParser, FindsTheNextRequestBehindEachBody) {
  const std::string text = Get("Content-Length: 3\r\n") + "abc" + Chunked("1\r\nx\r\n0\r\n\r\n") + Get("") + "GET /u";
  const Reading reading = ReadEveryWay(text);
  EXPECT_EQ(reading.requests, (Requests{"GET / [abc]", "POST / [x]", "GET / []"}));
}

TEST(RequestParser, KeepsConnectionsAsEachVersionSays) {
  EXPECT_EQ(ReadEveryWay(Get("Connection: close\r\n")).requests, Requests{"GET / close []"});
  EXPECT_EQ(ReadEveryWay(Get("Connection: upgrade, CLOSE\r\n")).requests, Requests{"GET / close []"});
  EXPECT_EQ(ReadEveryWay("GET / HTTP/1.0\r\n\r\n").requests, Requests{"GET / close []"});
  EXPECT_EQ(ReadEveryWay("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").requests, Requests{"GET / []"});
}

TEST(RequestParser, AnnouncesThatAClientWaitsForTheGoAhead) {
  EXPECT_EQ(ReadEveryWay(Get("Expect: 100-Continue\r\nContent-Length: 1\r\n") + "a").continues, 1);
  EXPECT_EQ(ReadEveryWay(Get("Expect: 100-continue\r\n")).continues, 0);
  EXPECT_EQ(ReadEveryWay("POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\na").continues, 0);
}

RequestParser::Taken ReadOne(const std::string& text) {
  static const Limits limits;
  RequestParser parser(limits, nullptr);
  std::size_t used = 0;
  auto event = parser.Feed(text, used);
  if (event == RequestParser::Event::kHead) event = parser.Feed(text, used);
  EXPECT_EQ(event, RequestParser::Event::kComplete);
  return parser.Take();
}

TEST(RequestParser, TellsPathAndFields) {
  const auto taken =
      ReadOne("PUT /v2/a%20b?x=1?2 HTTP/1.1\r\nHost: h:80\r\nX-Id:  a b \r\nX-Id: second\r\nEmpty:\r\n\r\n");
  EXPECT_EQ(taken.head.method(), Method::kPut);
  EXPECT_EQ(taken.head.path(), "/v2/a%20b");
  EXPECT_EQ(taken.head.Header("x-id"), "a b");
  EXPECT_EQ(taken.head.Header("none"), "");
  EXPECT_TRUE(taken.head.HasHeader("empty"));
  EXPECT_EQ(taken.head.header_count(), 4u);
  EXPECT_EQ(taken.head.HeaderName(0), "host");
  EXPECT_EQ(taken.head.HeaderValue(2), "second");
}

TEST(RequestParser, LeavesUnknownMethodsToTheRouter) {
  for (const std::string method : {"TRACE", "CONNECT", "BREW", "get", "PURGE"}) {
    const auto taken = ReadOne(method + " /v2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
    EXPECT_EQ(taken.head.method(), Method::kOther);
    EXPECT_EQ(taken.head.method_name(), method);
    EXPECT_EQ(taken.body.size(), 2u);
  }
}

TEST(RequestParser, TakesThePathOutOfAnAbsoluteTarget) {
  const auto taken = ReadOne("GET HTTP://host:1/a/b?c HTTP/1.1\r\nHost: host\r\n\r\n");
  EXPECT_EQ(taken.head.path(), "/a/b");
}

TEST(RequestParser, AlignsTheTensorsBehindTheJson) {
  for (const std::size_t json : {0u, 1u, 17u, 64u, 100u}) {
    const std::string body(json + 256, 'x');
    const auto taken =
        ReadOne(Format("POST / HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {}\r\n"
                       "Content-Length: {}\r\n\r\n{}",
                       json, body.size(), body));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken.body.view.data() + json) % kTensorAlignment, 0u) << json;
  }
}

TEST(RequestParser, LeavesAWrongJsonLengthToWhoeverReadsTheBody) {
  for (const char* json : {"-1", "6", "x", "99999999999999999999", ""}) {
    const auto taken = ReadOne(Format(
        "POST / HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {}\r\nContent-Length: 5\r\n\r\nhello", json));
    EXPECT_EQ(taken.body.size(), 5u) << json;
  }
}

TEST(RequestParser, LargeBodiesMayBeReadIntoPlace) {
  const Limits limits;
  RequestParser parser(limits, nullptr);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\nabc";
  std::size_t used = 0;
  ASSERT_EQ(parser.Feed(head, used), RequestParser::Event::kHead);
  ASSERT_EQ(parser.Feed(head, used), RequestParser::Event::kNeedMore);
  std::size_t got = 3;
  auto event = RequestParser::Event::kNeedMore;
  while (event == RequestParser::Event::kNeedMore) {
    const std::span<std::byte> room = parser.DirectRoom();
    if (room.empty()) {
      used = 0;
      event = parser.Feed(std::string(3000000 - got, 'z'), used);
      break;
    }
    const std::size_t n = std::min<std::size_t>(room.size(), 100'000);
    std::fill_n(room.begin(), n, std::byte{'y'});
    got += n;
    event = parser.CommitDirect(n);
  }
  ASSERT_EQ(event, RequestParser::Event::kComplete);
  const auto taken = parser.Take();
  ASSERT_EQ(taken.body.size(), 3000000u);
  EXPECT_EQ(taken.body.view[2], std::byte{'c'});
  EXPECT_EQ(taken.body.view[3], std::byte{'y'});
  EXPECT_EQ(taken.body.view[2'500'000], std::byte{'y'});
}

TEST(RequestParser, AFloodOfOneByteChunksIsCutShort) {
  const Limits limits;
  RequestParser parser(limits, nullptr);
  const std::string head = Chunked("");
  std::size_t used = 0;
  ASSERT_EQ(parser.Feed(head, used), RequestParser::Event::kHead);
  std::string chunks;
  for (int i = 0; i < 1000; ++i) chunks += "1\r\na\r\n";
  int rounds = 0;
  for (; rounds < 100; ++rounds) {
    used = 0;
    if (parser.Feed(chunks, used) == RequestParser::Event::kError) break;
  }
  EXPECT_LT(rounds, 80);
  EXPECT_EQ(parser.error().status, 400);
}

TEST(RequestParser, BodiesBeyondTheSharedBudgetAreTurnedAway) {
  const Limits limits;
  RequestParser parser(limits, std::make_shared<ByteBudget>(1000));
  const std::string text = Get("Content-Length: 2000\r\n") + std::string(2000, 'x');
  std::size_t used = 0;
  ASSERT_EQ(parser.Feed(text, used), RequestParser::Event::kHead);
  ASSERT_EQ(parser.Feed(text, used), RequestParser::Event::kError);
  EXPECT_EQ(parser.error().status, 503);
}

// A valid stream with a few bytes changed: near enough to be read far, wrong enough to find every exit.
std::string Mutated(std::string text) {
  const int changes = *rc::gen::inRange(0, 4);
  for (int i = 0; i < changes && !text.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const char c = *rc::gen::oneOf(rc::gen::element('\r', '\n', '\0', ' ', ':', ',', ';', '0', '9', 'a', '-'),
                                   rc::gen::arbitrary<char>());
    switch (*rc::gen::inRange(0, 3)) {
      case 0: text[at] = c; break;
      case 1: text.insert(at, 1, c); break;
      default: text.erase(at, 1);
    }
  }
  return text;
}

TEST(RequestParser, ReadsTheSameHoweverTheStreamIsCut) {
  EXPECT_TRUE(rc::check([] {
    const std::string text = Mutated(*rc::gen::element(
        Get("Content-Length: 9\r\n") + "some body" + Get(""),
        Chunked("3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: u\r\n\r\n") + Get("A: b\r\n"),
        std::string(
            "\r\nPOST /a?b HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n")));
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const auto size = *rc::gen::inRange<std::size_t>(1, 20);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    const Reading whole = Read({text}, SmallLimits());
    RC_ASSERT(Read(pieces, SmallLimits()) == whole);
    RC_ASSERT(Read(SingleBytes(text), SmallLimits()) == whole);
  }));
}

TEST(RequestParser, SurvivesGarbage) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& pieces) { (void)Read(pieces, SmallLimits()); }));
}

}  // namespace
}  // namespace tandem::http
