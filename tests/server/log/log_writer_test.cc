#include "server/log/log_writer.h"

#include <array>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

std::string Notice(std::uint64_t dropped) {
  return Format("{} dropped\n", dropped);
}

// A pipe that holds 4096 bytes. Its writing end is left open: a writer may still use it.
class SmallPipe {
 public:
  SmallPipe() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 4096);
  }
  ~SmallPipe() { Close(); }

  [[nodiscard]] int in() const { return ends_[1]; }
  // Reads until `text` has come.
  std::string ReadUntil(const std::string& text) {
    std::string all;
    std::array<char, 4096> part{};
    while (!all.ends_with(text)) {
      const ssize_t size = ::read(ends_[0], part.data(), part.size());
      if (size <= 0) break;
      all.append(part.data(), static_cast<std::size_t>(size));
    }
    return all;
  }
  void Close() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(LogWriter, WritesInOrder) {
  SmallPipe pipe;
  LogWriter writer(pipe.in(), 1 << 20, Notice);
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    writer.Write(Format("line {}\n", i));
    expected += Format("line {}\n", i);
  }
  EXPECT_EQ(pipe.ReadUntil("line 99\n"), expected);
  EXPECT_TRUE(writer.Flush(1min));
  EXPECT_EQ(writer.dropped(), 0u);
}

TEST(LogWriter, NobodyWaitsForAReaderThatStalls) {
  SmallPipe pipe;
  LogWriter writer(pipe.in(), 10'000, Notice);
  const std::string line(99, 'x');
  for (int i = 0; i < 1000; ++i) writer.Write(line + "\n");
  EXPECT_FALSE(writer.Flush(10ms));
  const std::uint64_t dropped = writer.dropped();
  EXPECT_GT(dropped, 800u);
  // The number stands where the lines would have, also if nothing comes after them.
  const std::string notice = Notice(dropped);
  const std::string read = pipe.ReadUntil(notice);
  EXPECT_EQ(read.size(), (1000 - dropped) * 100 + notice.size());
  EXPECT_THAT(read, StartsWith("xxx"));
  writer.Write("after\n");
  EXPECT_THAT(pipe.ReadUntil("after\n"), "after\n");
  EXPECT_EQ(writer.dropped(), dropped);
}

TEST(LogWriter, CountsWhatCannotBeWritten) {
  SmallPipe pipe;
  LogWriter writer(pipe.in(), 10'000, Notice);
  pipe.Close();
  for (int i = 0; i < 10; ++i) writer.Write("x\n");
  EXPECT_TRUE(writer.Flush(1min));
  EXPECT_EQ(writer.dropped(), 10u);
}

TEST(LogWriter, GoesWithoutWaiting) {
  SmallPipe pipe;
  LogWriter writer(pipe.in(), 1 << 20, Notice);
  for (int i = 0; i < 100; ++i) writer.Write(std::string(999, 'x') + "\n");
  EXPECT_FALSE(writer.Flush(1ms));
}

}  // namespace
}  // namespace tandem
