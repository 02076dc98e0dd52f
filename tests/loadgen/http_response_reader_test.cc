#include "loadgen/http_response_reader.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

struct Answer {
  std::string text;
  int status;
  std::string body;
  bool keep_alive;
};

const std::vector<Answer>& Answers() {
  static const std::vector<Answer> answers = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", true},
      {"HTTP/1.1 200 OK\r\ncontent-length:0\r\nX: y\r\n\r\n", 200, "", true},
      {"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno", 503, "no", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false},
      {"HTTP/1.1 204\r\n\r\n", 204, "", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nbad", 400, "bad", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
       200, "abc0123456789", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", true},
  };
  return answers;
}

void ExpectAnswer(HttpResponseReader& reader, const Answer& answer) {
  ASSERT_TRUE(reader.done()) << answer.text;
  EXPECT_EQ(reader.status(), answer.status);
  EXPECT_EQ(reader.body(), answer.body);
  EXPECT_EQ(reader.body_bytes(), answer.body.size());
  EXPECT_EQ(reader.keep_alive(), answer.keep_alive);
}

TEST(HttpResponseReader, ReadsTheSameAnswerWhereverTheBytesAreSplit) {
  for (const Answer& answer : Answers()) {
    for (std::size_t split = 0; split <= answer.text.size(); ++split) {
      HttpResponseReader reader;
      reader.Reset(true);
      const std::string_view text = answer.text;
      EXPECT_EQ(reader.Feed(text.substr(0, split)), split);
      EXPECT_EQ(reader.done(), split == text.size()) << split;
      EXPECT_EQ(reader.Feed(text.substr(split)), text.size() - split);
      ExpectAnswer(reader, answer);
    }
  }
}

TEST(HttpResponseReader, ReadsOneByteAtATime) {
  for (const Answer& answer : Answers()) {
    HttpResponseReader reader;
    reader.Reset(true);
    for (const char c : answer.text) {
      ASSERT_FALSE(reader.done());
      EXPECT_EQ(reader.Feed({&c, 1}), 1U);
    }
    ExpectAnswer(reader, answer);
  }
}

TEST(HttpResponseReader, HandsOutABodyPieceByPieceWhereverItsChunksAreTorn) {
  for (const Answer& answer : Answers()) {
    for (std::size_t size = 1; size <= answer.text.size(); ++size) {
      HttpResponseReader reader;
      reader.Reset(true);
      EXPECT_FALSE(reader.has_head());
      std::string body;
      for (std::size_t at = 0; at < answer.text.size(); at += size) {
        EXPECT_EQ(reader.Feed(std::string_view(answer.text).substr(at, size)), std::min(size, answer.text.size() - at));
        if (reader.has_head()) {
          EXPECT_EQ(reader.status(), answer.status);
        }
        body += reader.TakePiece();
      }
      EXPECT_TRUE(reader.done());
      EXPECT_TRUE(reader.has_head());
      EXPECT_EQ(body, answer.body) << size;
      EXPECT_EQ(reader.body_bytes(), answer.body.size());
    }
  }
}

TEST(HttpResponseReader, LeavesWhatFollowsTheAnswer) {
  for (const Answer& answer : Answers()) {
    HttpResponseReader reader;
    reader.Reset(true);
    EXPECT_EQ(reader.Feed(answer.text + "HTTP/1.1 200"), answer.text.size());
    ExpectAnswer(reader, answer);
  }
}

TEST(HttpResponseReader, ReadsManyAnswersInTurn) {
  HttpResponseReader reader;
  for (const Answer& answer : Answers()) {
    reader.Reset(true);
    EXPECT_FALSE(reader.started());
    (void)reader.Feed(answer.text);
    EXPECT_TRUE(reader.started());
    ExpectAnswer(reader, answer);
  }
}

TEST(HttpResponseReader, TakesABodyWithoutLengthUntilTheConnectionCloses) {
  HttpResponseReader reader;
  reader.Reset(true);
  (void)reader.Feed("HTTP/1.1 200 OK\r\n\r\nsome");
  (void)reader.Feed(" text");
  EXPECT_FALSE(reader.done());
  reader.Close();
  ExpectAnswer(reader, {"", 200, "some text", false});
}

TEST(HttpResponseReader, DoesNotTakeACutAnswerForAWholeOne) {
  HttpResponseReader reader;
  reader.Reset(true);
  (void)reader.Feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  reader.Close();
  EXPECT_FALSE(reader.done());
}

TEST(HttpResponseReader, RefusesMalformedFraming) {
  for (const std::string text : {
           "SSH-2.0-OpenSSH\r\n",
           "HTTP/2.0 200 OK\r\n",
           "HTTP/1.1 20 OK\r\n\r\n",
           "HTTP/1.1 -20 OK\r\n\r\n",
           "HTTP/1.1 200OK\r\n\r\n",
           "HTTP/1.1 200 OK\n\n",
           "HTTP/1.1 200 OK\r\nno colon\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 10abc\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
           "HTTP/1.1 101 Switching\r\n\r\n",
       }) {
    HttpResponseReader reader;
    reader.Reset(false);
    (void)reader.Feed(text);
    EXPECT_TRUE(reader.malformed()) << text;
  }
}

TEST(HttpResponseReader, RefusesAHeadWithoutEnd) {
  HttpResponseReader reader;
  reader.Reset(false);
  (void)reader.Feed("HTTP/1.1 200 OK\r\n");
  for (int i = 0; i < 10'000 && !reader.malformed(); ++i) (void)reader.Feed("Header: value\r\n");
  EXPECT_TRUE(reader.malformed());
}

TEST(HttpResponseReader, KeepsHeadersOnlyWhenTheBodyIsKept) {
  HttpResponseReader reader;
  reader.Reset(true);
  const std::string text =
      "HTTP/1.1 100 Continue\r\nOne: early\r\n\r\nHTTP/1.1 200 OK\r\nOne:  1 \r\none: 2\r\nTwo:\r\n"
      "Content-Length: 0\r\n\r\n";
  for (const char c : text) (void)reader.Feed({&c, 1});
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(reader.Header("ONE"), "1");
  EXPECT_EQ(reader.Header("two"), "");
  EXPECT_EQ(reader.Header("thr"), std::nullopt);
  reader.Reset(false);
  (void)reader.Feed("HTTP/1.1 200 OK\r\nOne: 1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(reader.Header("one"), std::nullopt);
}

}  // namespace
}  // namespace tandem::loadgen
