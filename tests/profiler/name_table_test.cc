#include "profiler/name_table.h"

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/format.h"

namespace tandem {
namespace {

TEST(NameTable, GivesEveryNameANumberOfItsOwn) {
  const auto table = std::make_unique<NameTable>();
  const std::uint32_t one = table->NumberOf("resnet50");
  const std::uint32_t two = table->NumberOf("squeezenet");
  EXPECT_NE(one, 0u);
  EXPECT_NE(one, two);
  EXPECT_EQ(table->NumberOf("resnet50"), one);
  EXPECT_EQ(table->NameOf(one), "resnet50");
  EXPECT_EQ(table->NameOf(two), "squeezenet");
  EXPECT_EQ(table->NameOf(0), "");
  EXPECT_EQ(table->NameOf(99'999), "");
}

TEST(NameTable, CutsWhatIsLongerThanANameCanBe) {
  const auto table = std::make_unique<NameTable>();
  const std::uint32_t number = table->NumberOf(std::string(300, 'x'));
  EXPECT_EQ(table->NameOf(number), std::string(NameTable::kLongest, 'x'));
}

TEST(NameTable, ThatIsFullStillKnowsWhatItKnows) {
  const auto table = std::make_unique<NameTable>();
  const std::uint32_t first = table->NumberOf("first");
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 10'000; ++i) numbers.insert(table->NumberOf(Format("model-{}", i)));
  EXPECT_TRUE(numbers.contains(0));
  EXPECT_LE(numbers.size(), NameTable::kRoom);
  EXPECT_EQ(table->NumberOf("first"), first);
  EXPECT_EQ(table->NameOf(first), "first");
}

TEST(NameTable, ThreadsThatComeAtOnceAgree) {
  for (int round = 0; round < 50; ++round) {
    const auto table = std::make_unique<NameTable>();
    std::vector<std::vector<std::uint32_t>> found(4);
    {
      std::vector<std::jthread> threads;
      for (auto& numbers : found) {
        threads.emplace_back([&] {
          for (int i = 0; i < 40; ++i) numbers.push_back(table->NumberOf(Format("model-{}", i)));
        });
      }
    }
    for (const auto& numbers : found) EXPECT_EQ(numbers, found[0]);
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(table->NameOf(found[0][static_cast<std::size_t>(i)]), Format("model-{}", i));
    }
  }
}

}  // namespace
}  // namespace tandem
