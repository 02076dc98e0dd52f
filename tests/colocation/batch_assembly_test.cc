#include "colocation/batch_assembly.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using testing::MakeServable;
using testing::MakeTensor;
using testing::ValuesOf;

WorkItem Item(const std::vector<float>& values, std::vector<std::string> outputs = {"y"}) {
  const auto rows = static_cast<std::int64_t>(values.size() / 2);
  WorkItem item;
  item.servable = MakeServable("m", {.max_batch_size = 8, .dynamic = true});
  item.inputs = {MakeTensor("x", DataType::kFp32, {rows, 2}, values)};
  item.outputs = std::move(outputs);
  item.batch = rows;
  return item;
}

std::vector<WorkItem> Two(WorkItem a, WorkItem b) {
  std::vector<WorkItem> items;
  items.push_back(std::move(a));
  items.push_back(std::move(b));
  return items;
}

TEST(BatchAssembly, UsesASingleRequestsTensorsWithoutCopying) {
  std::vector<WorkItem> items;
  items.push_back(Item({1, 2}));
  EXPECT_EQ(JoinInputs(items)[0].data.view.data(), items[0].inputs[0].data.view.data());
}

TEST(BatchAssembly, JoinsRowsAndGivesEachRequestItsOwnBack) {
  const auto items = Two(Item({1, 2}), Item({3, 4, 5, 6}));
  const std::vector<Tensor> inputs = JoinInputs(items);
  EXPECT_EQ(inputs[0].shape, (Shape{3, 2}));
  EXPECT_EQ(ValuesOf<float>(inputs[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));

  Tensor output = inputs[0];
  output.name = "y";
  const auto split = SplitOutputs(items, {output});
  ASSERT_TRUE(split[0] && split[1]);
  EXPECT_EQ(ValuesOf<float>((*split[0])[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ((*split[1])[0].shape, (Shape{2, 2}));
  EXPECT_EQ(ValuesOf<float>((*split[1])[0]), (std::vector<float>{3, 4, 5, 6}));
}

TEST(BatchAssembly, SplitsStringsByTheirLengths) {
  const auto items = Two(Item({1, 2}), Item({3, 4}));
  std::string bytes;
  for (const char* text : {"a", "", "long text", "z"}) AppendBytesElement(text, bytes);
  const Tensor output = MakeTensor("y", DataType::kBytes, {2, 2}, std::vector<char>(bytes.begin(), bytes.end()));
  const auto split = SplitOutputs(items, {output});
  ASSERT_TRUE(split[0] && split[1]);
  EXPECT_EQ(BytesElements((*split[0])[0].data.view), (std::vector<std::string_view>{"a", ""}));
  EXPECT_EQ(BytesElements((*split[1])[0].data.view), (std::vector<std::string_view>{"long text", "z"}));
}

TEST(BatchAssembly, GivesEachRequestTheOutputsItNamedInItsOrder) {
  const auto items = Two(Item({1, 2}, {"b", "a"}), Item({3, 4}, {"c"}));
  EXPECT_EQ(UnionOfOutputs(items), (std::vector<std::string>{"b", "a", "c"}));
  std::vector<Tensor> outputs;
  for (const char* name : {"b", "a", "c"})
    outputs.push_back(MakeTensor(name, DataType::kFp32, {2, 1}, std::vector<float>{1, 2}));
  const auto split = SplitOutputs(items, outputs);
  ASSERT_TRUE(split[0] && split[1]);
  EXPECT_EQ((*split[0])[0].name, "b");
  EXPECT_EQ((*split[0])[1].name, "a");
  EXPECT_EQ((*split[1])[0].name, "c");
}

TEST(BatchAssembly, RefusesAnOutputThatLostTheBatch) {
  const auto items = Two(Item({1, 2}), Item({3, 4}));
  const auto split = SplitOutputs(items, {MakeTensor("y", DataType::kFp32, {1, 2}, std::vector<float>{1, 2})});
  for (const auto& own : split) {
    ASSERT_FALSE(own);
    EXPECT_EQ(own.error().code, ErrorCode::kInternal);
  }
}

TEST(BatchAssembly, AnOutputThatLostTheBatchConcernsOnlyThoseWhoWantIt) {
  const auto items = Two(Item({1, 2}, {"y"}), Item({3, 4}, {"sum", "y"}));
  const auto split = SplitOutputs(items, {MakeTensor("sum", DataType::kFp32, {1}, std::vector<float>{10}),
                                          MakeTensor("y", DataType::kFp32, {2, 1}, std::vector<float>{7, 8})});
  ASSERT_TRUE(split[0]);
  EXPECT_EQ(ValuesOf<float>((*split[0])[0]), std::vector<float>{7});
  EXPECT_FALSE(split[1]);
}

TEST(BatchAssembly, SharesARunOnlyBetweenRequestsAlikeButForTheBatch) {
  EXPECT_TRUE(CanShareRun(Item({1, 2}), Item({3, 4, 5, 6})));
  WorkItem wider = Item({1, 2});
  wider.inputs[0].shape = {1, 1, 2};
  EXPECT_FALSE(CanShareRun(Item({1, 2}), wider));
  EXPECT_EQ(ShareHash(Item({1, 2})), ShareHash(Item({3, 4, 5, 6})));
  EXPECT_NE(ShareHash(Item({1, 2})), ShareHash(wider));
  WorkItem without = Item({1, 2});
  without.inputs.clear();
  EXPECT_FALSE(CanShareRun(Item({1, 2}), without));
  // How many rows each of them gets, nothing would say.
  EXPECT_FALSE(CanShareRun(without, without));
}

}  // namespace
}  // namespace tandem
