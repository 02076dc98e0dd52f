#include "loadgen/request_csv.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;

std::string Read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class RequestCsvTest : public ::testing::Test {
 protected:
  const std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) / "requests.csv";
  const MonotonicTime start_ = MonotonicTime(100s);
};

TEST_F(RequestCsvTest, HasALineForEveryRequest) {
  const auto csv = RequestCsv::Create(file_, {"a", "b, \"c\""});
  ASSERT_TRUE(csv);
  const RequestRecord answered{.request = 3,
                               .scheduled = start_ + 1s,
                               .submitted = start_ + 1s,
                               .sent = start_ + 1s + 1us,
                               .first_byte = start_ + 1s + 4ms,
                               .done = start_ + 1s + 5ms,
                               .status = 200,
                               .bytes = 42};
  (*csv)->Add({.record = answered, .start = start_, .batch = 8, .outcome = Outcome::kLate, .latency = 5ms});
  const RequestRecord lost{
      .request = 1, .scheduled = start_ + 2s, .done = start_ + 2s, .outcome = TransportOutcome::kConnectFailed};
  (*csv)->Add({.record = lost,
               .start = start_,
               .model = 1,
               .warmup = true,
               .outcome = Outcome::kFailed,
               .latency = 0ms,
               .reason = "could not connect"});
  ASSERT_TRUE((*csv)->Close());
  EXPECT_EQ(Read(file_),
            "model,scheduled_s,sent_s,first_byte_s,done_s,outcome,status,latency_ms,bytes,warmup,batch,reason\n"
            "a,1.000000000,1.000001000,1.004000000,1.005000000,late,200,5.000000,42,0,8,\n"
            "\"b, \"\"c\"\"\",2.000000000,,,2.000000000,failed,0,0.000000,0,1,1,could not connect\n");
}

TEST_F(RequestCsvTest, ManyRequestsAreWrittenAsTheRunGoesOn) {
  const auto csv = RequestCsv::Create(file_, {"a"});
  ASSERT_TRUE(csv);
  const RequestRecord record{.scheduled = start_, .sent = start_, .done = start_ + 1ms, .status = 200};
  for (int i = 0; i < 20'000; ++i) (*csv)->Add({.record = record, .start = start_, .latency = 1ms});
  EXPECT_GT(std::filesystem::file_size(file_), 500'000u);
  ASSERT_TRUE((*csv)->Close());
  const std::string text = Read(file_);
  EXPECT_EQ(std::ranges::count(text, '\n'), 20'001);
}

TEST_F(RequestCsvTest, AFullDiskIsToldAtTheEnd) {
  const auto csv = RequestCsv::Create("/dev/full", {"a"});
  ASSERT_TRUE(csv);
  const RequestRecord record{.scheduled = start_, .sent = start_, .done = start_};
  for (int i = 0; i < 10'000; ++i) (*csv)->Add({.record = record, .start = start_});
  const Status closed = (*csv)->Close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("/dev/full"), std::string::npos);
  EXPECT_NE(closed.error().message.find("No space"), std::string::npos);
}

TEST_F(RequestCsvTest, AFileThatCannotBeMadeIsNamed) {
  const auto csv = RequestCsv::Create("/no/such/folder/x.csv", {"a"});
  ASSERT_FALSE(csv);
  EXPECT_NE(csv.error().message.find("/no/such/folder/x.csv"), std::string::npos);
}

}  // namespace
}  // namespace tandem::loadgen
