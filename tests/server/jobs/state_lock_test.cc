#include "server/jobs/state_lock.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

using testing::HasSubstr;

TEST(StateLock, ASecondHolderIsRefusedWithTheProcessOfTheFirst) {
  const TestFolder folder;
  const std::filesystem::path state = folder.path() / "a" / "state";
  {
    const auto first = StateLock::Acquire(state);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = StateLock::Acquire(state);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    EXPECT_THAT(second.error().message, HasSubstr(state.string()));
    EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid()) + ";"));
  }
  EXPECT_TRUE(StateLock::Acquire(state));
}

TEST(StateLock, WhatADeadProcessLeftIsNoLock) {
  const TestFolder folder;
  std::ofstream(folder.path() / "lock") << "123456789\n";
  EXPECT_TRUE(StateLock::Acquire(folder.path()));
}

TEST(StateLock, TheDirectoryIsForItsOwnerAlone) {
  const TestFolder folder;
  ASSERT_TRUE(StateLock::Acquire(folder.path() / "state"));
  struct stat status{};
  ASSERT_EQ(::stat((folder.path() / "state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(StateLock, WhatIsNoDirectoryIsRefused) {
  const TestFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const auto lock = StateLock::Acquire(folder.path() / "file");
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("cannot be made: File exists"));
  EXPECT_THAT(StateLock::Acquire(folder.path() / "file" / "below").error().message,
              HasSubstr("cannot be made: Not a directory"));
}

}  // namespace
}  // namespace tandem::jobs
