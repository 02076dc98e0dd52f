#include "server/grpc/due_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::grpc_front {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Thing {
  DueList<Thing>::Place place{*this};
};

TEST(DueList, GivesWhatIsDueOnceAndKeepsTheRest) {
  const MonotonicTime start;
  DueList<Thing> list;
  Thing early;
  Thing late;
  list.Add(late.place, start + seconds(9));
  list.Add(early.place, start + seconds(3));
  EXPECT_THAT(list.Take(start + seconds(2)), IsEmpty());
  EXPECT_THAT(list.Take(start + seconds(3)), ElementsAre(&early));
  EXPECT_THAT(list.Take(start + seconds(3)), IsEmpty());
  EXPECT_THAT(list.Take(start + seconds(9)), ElementsAre(&late));
}

TEST(DueList, ForgetsWhatIsRemovedAndTakesItAgain) {
  const MonotonicTime start;
  DueList<Thing> list;
  Thing thing;
  list.Remove(thing.place);
  list.Add(thing.place, start);
  list.Add(thing.place, start + seconds(5));
  EXPECT_THAT(list.Take(start), IsEmpty());
  list.Remove(thing.place);
  list.Remove(thing.place);
  EXPECT_THAT(list.Take(start + seconds(5)), IsEmpty());
  list.Add(thing.place, start + seconds(6));
  EXPECT_THAT(list.Take(MonotonicTime::max()), ElementsAre(&thing));
}

}  // namespace
}  // namespace tandem::grpc_front
