#include "server/cli/sse_reader.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kStream =
    "id: 1\nevent: state\ndata: {\"a\":1}\n\n"
    ": still here\n\n"
    "id: 2\r\nevent: plan\r\ndata: one\r\ndata: two\r\n\r\n"
    "data:without a blank\n\n"
    "id: 3\ndata: never ended";

TEST(SseReader, ReadsTheSameEventsWhereverTheStreamIsTorn) {
  for (std::size_t size = 1; size <= kStream.size(); ++size) {
    SseReader reader;
    std::vector<ServerSentEvent> events;
    for (std::size_t at = 0; at < kStream.size(); at += size) {
      const auto some = reader.Feed(kStream.substr(at, size));
      ASSERT_TRUE(some);
      events.insert(events.end(), some->begin(), some->end());
    }
    EXPECT_THAT(events,
                ElementsAre(ServerSentEvent{"1", "state", "{\"a\":1}"}, ServerSentEvent{"2", "plan", "one\ntwo"},
                            ServerSentEvent{"2", "", "without a blank"}))
        << size;
  }
}

TEST(SseReader, AnEventWithoutEndIsNoReasonToFillTheMemory) {
  SseReader reader;
  const std::string piece(1 << 20, 'x');
  int fed = 0;
  while (fed < 100 && reader.Feed(piece)) ++fed;
  EXPECT_LT(fed, 100);
}

}  // namespace
}  // namespace tandem::cli
