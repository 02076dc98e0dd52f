#include "memory/lane_pages.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace tandem {
namespace {

constexpr std::uint64_t kLength = 64 << 10;

std::uint64_t PagesHeld(int fd) {
  struct stat status{};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(LanePages, StayAsTheyAreUntilTheyAreClearedOrCutOff) {
  const auto pages = LanePages::Create().value();
  EXPECT_EQ(pages->length(), 0U);
  ASSERT_TRUE(pages->SetLength(kLength));
  auto* const bytes =
      static_cast<char*>(::mmap(nullptr, 4 * kLength, PROT_READ | PROT_WRITE, MAP_SHARED, pages->fd(), 0));
  ASSERT_NE(bytes, MAP_FAILED);
  EXPECT_EQ(PagesHeld(pages->fd()), 0U) << "nobody has written to them";
  bytes[0] = bytes[kLength - 1] = 7;
  ASSERT_TRUE(pages->SetLength(2 * kLength));
  bytes[2 * kLength - 1] = 8;
  EXPECT_EQ(bytes[0], 7) << "longer: nothing moves";
  EXPECT_GT(PagesHeld(pages->fd()), 0U);
  ASSERT_TRUE(pages->SetLength(kLength));
  ASSERT_TRUE(pages->SetLength(2 * kLength));
  EXPECT_EQ(bytes[2 * kLength - 1], 0) << "what was cut off is gone";
  EXPECT_EQ(bytes[kLength - 1], 7);
  pages->Clear();
  EXPECT_EQ(PagesHeld(pages->fd()), 0U);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[kLength - 1], 0);
  ::munmap(bytes, 4 * kLength);
}

TEST(LanePages, WhoTouchesWhatIsBeyondTheirEndEndsAlone) {
  const auto pages = LanePages::Create().value();
  ASSERT_TRUE(pages->SetLength(kLength));
  auto* const bytes =
      static_cast<char*>(::mmap(nullptr, 2 * kLength, PROT_READ | PROT_WRITE, MAP_SHARED, pages->fd(), 0));
  ASSERT_NE(bytes, MAP_FAILED);
  bytes[1] = 7;
  const auto touch = [&] {
    std::signal(SIGBUS, SIG_DFL);  // A sanitizer would report it.
    bytes[kLength + 1] = 1;
  };
  EXPECT_EXIT(touch(), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EQ(bytes[1], 7);
  ::munmap(bytes, 2 * kLength);
}

TEST(LanePages, AreNotLongerThanAFileCanBe) {
  const auto pages = LanePages::Create().value();
  EXPECT_EQ(pages->SetLength(~std::uint64_t{0}).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(pages->length(), 0U);
}

}  // namespace
}  // namespace tandem
