#include "server/core/bulk_thread.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using testing::ElementsAre;

TEST(BulkThread, RunsAllInOrderBeforeItEnds) {
  std::vector<int> ran;
  std::vector<std::thread::id> threads;
  {
    BulkThread bulk;
    for (int i = 0; i < 3; ++i) {
      bulk.Do([&, i] {
        ran.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
    }
  }
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
  EXPECT_NE(threads[0], std::this_thread::get_id());
  EXPECT_EQ(threads[0], threads[2]);
}

TEST(BulkThread, EndsWithoutAnyWork) {
  BulkThread bulk;
}

TEST(BulkThread, DropsWhatComesAfterItsEnd) {
  BulkThread bulk;
  bulk.Stop();
  bool ran = false;
  bulk.Do([&] { ran = true; });
  bulk.Stop();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tandem
