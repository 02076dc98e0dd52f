#include "runtimes/training/data/batch_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sched.h>

#include "tests/runtimes/training/data/data_files.h"

namespace tandem::training {
namespace {

using ::testing::HasSubstr;

// Examples that are their own numbers. Counts how many batches of it are alive.
class Numbers final : public ExampleSource {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::int64_t classes() const override { return 0; }
  [[nodiscard]] const std::vector<std::string>& class_names() const override { return names_; }
  [[nodiscard]] Status Read(std::span<const std::int64_t> examples, Batch& into,
                            const std::stop_token& stop) const override {
    while (slow_ && !stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    if (std::ranges::find(examples, bad_) != examples.end()) return Invalid("row {} is bad", bad_);
    const int alive = ++alive_;
    if (alive > most_alive_) most_alive_ = alive;
    ++reads_;
    auto numbers = std::shared_ptr<std::vector<std::int64_t>>(
        new std::vector<std::int64_t>(examples.begin(), examples.end()), [this](std::vector<std::int64_t>* gone) {
          --alive_;
          delete gone;
        });
    const auto view = std::as_bytes(std::span(*numbers));
    into.target = {
        .name = "target", .type = DataType::kInt64, .shape = {std::ssize(examples)}, .data = {view, numbers}};
    into.size = std::ssize(examples);
    return {};
  }

  std::int64_t bad_ = -1;
  bool slow_ = false;
  mutable std::atomic<int> alive_{0}, most_alive_{0}, reads_{0};

 private:
  const std::int64_t size_;
  const std::vector<std::string> names_;
};

using Rows = std::vector<std::int64_t>;

std::unique_ptr<BatchStream> Stream(const ExampleSource& source, const StreamOptions& options) {
  auto stream = BatchStream::Open(source, options);
  EXPECT_TRUE(stream) << stream.error().message;
  return *std::move(stream);
}

Rows NextRows(BatchStream& stream) {
  auto batch = stream.Next();
  if (!batch || !*batch) return {};
  return Values<std::int64_t>((*batch)->target);
}

std::vector<Rows> AllRows(const ExampleSource& source, const StreamOptions& options) {
  const auto stream = Stream(source, options);
  std::vector<Rows> all;
  for (Rows rows = NextRows(*stream); !rows.empty(); rows = NextRows(*stream)) all.push_back(rows);
  return all;
}

Rows Joined(const std::vector<Rows>& parts) {
  Rows all;
  for (const Rows& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Rows Sorted(Rows rows) {
  std::ranges::sort(rows);
  return rows;
}

Rows UpTo(std::int64_t size) {
  Rows rows(static_cast<std::size_t>(size));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

StreamOptions AnyOptions() {
  return {.held_out = *rc::gen::inRange(0, 90) / 100.0,
          .batch_size = *rc::gen::inRange(1, 12),
          .drop_last = *rc::gen::arbitrary<bool>(),
          .epochs = 3,
          .seed = *rc::gen::arbitrary<std::uint64_t>(),
          .prefetch = 0};
}

RC_GTEST_PROP(BatchStream, GoesOnExactlyFromEveryPosition, ()) {
  const Numbers source(*rc::gen::inRange(1, 60));
  StreamOptions options = AnyOptions();
  RC_PRE(BatchStream::Open(source, options).has_value());
  const std::vector<Rows> whole = AllRows(source, options);
  const auto stream = Stream(source, options);
  for (std::size_t done = 0; done <= whole.size(); ++done) {
    options.start = stream->position();
    options.prefetch = static_cast<int>(done % 3);
    const std::vector<Rows> rest = AllRows(source, options);
    RC_ASSERT(rest == std::vector<Rows>(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()));
    (void)NextRows(*stream);
  }
}

RC_GTEST_PROP(BatchStream, PartsAreDisjointAndComplete, ()) {
  const std::int64_t size = *rc::gen::inRange(2, 200);
  const Numbers source(size);
  StreamOptions options = AnyOptions();
  options.drop_last = false;
  options.epochs = 1;
  Rows all = Joined(AllRows(source, options));
  options.part = StreamPart::kHeldOut;
  const std::int64_t held_out = HeldOutCount(size, options.held_out);
  RC_ASSERT(std::ssize(all) == size - held_out);
  if (held_out > 0) {
    const Rows rest = Joined(AllRows(source, options));
    RC_ASSERT(std::ssize(rest) == held_out);
    all.insert(all.end(), rest.begin(), rest.end());
  }
  RC_ASSERT(Sorted(all) == UpTo(size));
}

RC_GTEST_PROP(BatchStream, PrefetchChangesNothing, ()) {
  const Numbers source(*rc::gen::inRange(1, 100));
  StreamOptions options = AnyOptions();
  RC_PRE(BatchStream::Open(source, options).has_value());
  const auto without = AllRows(source, options);
  options.prefetch = *rc::gen::inRange(1, 5);
  RC_ASSERT(AllRows(source, options) == without);
}

TEST(BatchStream, OrdersEachEpochAnew) {
  const Numbers source(100);
  const StreamOptions options{.batch_size = 100, .epochs = 3, .seed = 1};
  const auto epochs = AllRows(source, options);
  ASSERT_EQ(epochs.size(), 3u);
  for (const Rows& epoch : epochs) EXPECT_EQ(Sorted(epoch), UpTo(100));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_NE(epochs[0], UpTo(100));
  const auto other = AllRows(source, {.batch_size = 100, .epochs = 1, .seed = 2});
  EXPECT_NE(other[0], epochs[0]);
}

TEST(BatchStream, KeepsTheHeldOutPartInOneOrder) {
  const Numbers source(50);
  const StreamOptions options{
      .part = StreamPart::kHeldOut, .held_out = 0.2, .batch_size = 4, .shuffle = false, .epochs = 2};
  const auto rows = AllRows(source, options);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[2].size(), 2u);
  EXPECT_EQ(std::vector<Rows>(rows.begin(), rows.begin() + 3), std::vector<Rows>(rows.begin() + 3, rows.end()));
}

TEST(BatchStream, WalksAWholeSourceInItsOwnOrderWhenNotShuffled) {
  const Numbers source(10);
  EXPECT_EQ(Joined(AllRows(source, {.batch_size = 3, .shuffle = false, .epochs = 1, .seed = 9})), UpTo(10));
}

TEST(BatchStream, KeepsOrDropsAShortBatch) {
  const Numbers source(10);
  EXPECT_EQ(AllRows(source, {.batch_size = 4, .epochs = 1}).size(), 3u);
  EXPECT_EQ(AllRows(source, {.batch_size = 4, .drop_last = true, .epochs = 1}).size(), 2u);
  EXPECT_FALSE(BatchStream::Open(source, {.batch_size = 11, .drop_last = true}));
  EXPECT_TRUE(BatchStream::Open(source, {.batch_size = 11}));
}

TEST(BatchStream, IsTheSameOnEveryMachine) {
  const Numbers source(10);
  EXPECT_THAT(AllRows(source, {.held_out = 0.3, .batch_size = 7, .epochs = 1, .seed = 42})[0],
              ::testing::ElementsAre(1, 7, 3, 9, 0, 6, 4));
}

TEST(BatchStream, TellsItsPositionBeforeEachBatch) {
  const Numbers source(10);
  const auto stream = Stream(source, {.batch_size = 5});
  EXPECT_EQ(stream->batches_per_epoch(), 2);
  EXPECT_EQ(stream->position(), (StreamPosition{0, 0}));
  (void)NextRows(*stream);
  EXPECT_EQ(stream->position(), (StreamPosition{0, 1}));
  (void)NextRows(*stream);
  EXPECT_EQ(stream->position(), (StreamPosition{1, 0}));
  // An epoch that is through is the start of the next.
  const auto same = Stream(source, {.batch_size = 5, .start = {.epoch = 0, .batch = 2}});
  EXPECT_EQ(same->position(), (StreamPosition{1, 0}));
  EXPECT_EQ(NextRows(*same), NextRows(*stream));
}

TEST(BatchStream, DeliversErrorsInTheirPlaceAndStaysThere) {
  for (const int prefetch : {0, 1, 4}) {
    Numbers source(40);
    const StreamOptions options{.batch_size = 4, .seed = 3, .prefetch = prefetch};
    const auto whole = AllRows(source, {.batch_size = 4, .epochs = 1, .seed = 3});
    source.bad_ = whole[6][2];
    const auto stream = Stream(source, options);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(NextRows(*stream), whole[i]);
    for (int i = 0; i < 3; ++i) {
      const auto batch = stream->Next();
      ASSERT_FALSE(batch);
      EXPECT_THAT(batch.error().message, HasSubstr("is bad"));
      EXPECT_EQ(stream->position(), (StreamPosition{0, 6}));
    }
  }
}

TEST(BatchStream, HoldsNoMoreThanItMayReadAhead) {
  const Numbers source(10'000);
  {
    const auto stream = Stream(source, {.batch_size = 1, .prefetch = 3});
    while (source.reads_ < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(source.reads_, 3);
    for (int i = 0; i < 500; ++i) {
      const auto batch = stream->Next();
      ASSERT_TRUE(batch && *batch);
    }
  }
  EXPECT_LE(source.most_alive_, 3 + 1);
  EXPECT_EQ(source.alive_, 0);
}

TEST(BatchStream, GoesAwayInTheMiddleOfAnything) {
  Numbers source(100);
  for (int i = 0; i < 50; ++i) {
    const auto stream = Stream(source, {.batch_size = 1, .prefetch = 1 + i % 3});
    for (int taken = 0; taken < i % 5; ++taken) (void)NextRows(*stream);
  }
  // Also while the source takes for ever.
  source.slow_ = true;
  (void)Stream(source, {.batch_size = 1});
}

TEST(BatchStream, ReadsAheadOnAThreadOfItsOwnThatRanksAsTheTrainerDoes) {
  class Watcher final : public ExampleSource {
   public:
    [[nodiscard]] std::int64_t size() const override { return 1; }
    [[nodiscard]] std::int64_t classes() const override { return 0; }
    [[nodiscard]] const std::vector<std::string>& class_names() const override { return names_; }
    [[nodiscard]] Status Read(std::span<const std::int64_t>, Batch& into, const std::stop_token&) const override {
      std::ifstream("/proc/thread-self/comm") >> into.target.name;
      into.size = ::sched_getscheduler(0);
      return {};
    }
    const std::vector<std::string> names_;
  };
  const Watcher source;
  const auto batch = Stream(source, {.batch_size = 1})->Next();
  ASSERT_TRUE(batch && *batch);
  EXPECT_EQ((*batch)->target.name, "training-data");
  EXPECT_EQ((*batch)->size, ::sched_getscheduler(0));
}

TEST(BatchStream, RefusesOptionsThatMakeNoSense) {
  const Numbers source(10);
  EXPECT_FALSE(BatchStream::Open(source, {.batch_size = 0}));
  EXPECT_FALSE(BatchStream::Open(source, {.held_out = 1}));
  EXPECT_FALSE(BatchStream::Open(source, {.held_out = -0.1}));
  EXPECT_FALSE(BatchStream::Open(source, {.part = StreamPart::kHeldOut}));
  EXPECT_FALSE(BatchStream::Open(source, {.prefetch = -1}));
  EXPECT_FALSE(BatchStream::Open(source, {.batch_size = 5, .start = {.epoch = 0, .batch = 3}}));
  EXPECT_FALSE(BatchStream::Open(source, {.start = {.epoch = -1, .batch = 0}}));
}

TEST(HeldOutCount, LeavesSomethingForBothParts) {
  EXPECT_EQ(HeldOutCount(100, 0), 0);
  EXPECT_EQ(HeldOutCount(100, 0.2), 20);
  EXPECT_EQ(HeldOutCount(10, 0.001), 1);
  EXPECT_EQ(HeldOutCount(10, 0.999), 9);
  EXPECT_EQ(HeldOutCount(1, 0.5), 0);
}

TEST(Permutation, GivesEveryOrderOfAFewEquallyOften) {
  std::map<Rows, int> seen;
  constexpr int kTries = 24'000;
  for (int i = 0; i < kTries; ++i) {
    const Permutation permutation(4, 5, static_cast<std::uint64_t>(i));
    Rows order;
    for (std::int64_t place = 0; place < 4; ++place) order.push_back(permutation.At(place));
    ++seen[order];
  }
  ASSERT_EQ(seen.size(), 24u);
  // Six standard deviations of 1000.
  for (const auto& [order, times] : seen) EXPECT_NEAR(times, kTries / 24, 190);
}

RC_GTEST_PROP(Permutation, HasEveryNumberOnce, ()) {
  const std::int64_t size = *rc::gen::inRange(1, 5000);
  const Permutation permutation(size, *rc::gen::arbitrary<std::uint64_t>(), 1);
  Rows rows;
  for (std::int64_t place = 0; place < size; ++place) rows.push_back(permutation.At(place));
  RC_ASSERT(Sorted(rows) == UpTo(size));
}

}  // namespace
}  // namespace tandem::training
