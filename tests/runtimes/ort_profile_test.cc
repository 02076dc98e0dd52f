#include "runtimes/onnx/ort_profile.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "api/base/format.h"
#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

std::string Event(const std::string& category, const std::string& name, int began, int took,
                  const std::string& more = "") {
  return Format(R"({{"cat" : "{}","pid" :1,"tid" :7,"dur" :{},"ts" :{},"ph" : "X","name" :"{}","args" : {{{}}}}},)",
                category, took, began, name, more) +
         "\n";
}

std::string Node(const std::string& name, const std::string& op, int began, int took) {
  return Event("Node", name + "_kernel_time", began, took,
               Format(R"("op_name" : "{}","provider" : "CPUExecutionProvider")", op));
}

std::string WholeRun(int began, int took) {
  return Event("Session", "model_run", began, took);
}

SessionProfile Read(const std::string& text, std::uint64_t most_runs = 100) {
  std::istringstream in("[\n" + text + "]\n");
  return ReadOrtProfile(in, most_runs);
}

TEST(OrtProfile, LeavesTheFirstRunOut) {
  const SessionProfile profile =
      Read(Node("a", "Conv", 10, 500) + WholeRun(5, 600) + Node("a", "Conv", 1000, 30) + WholeRun(995, 40) +
           Node("a", "Conv", 2000, 10) + WholeRun(1995, 20) + Node("a", "Conv", 3000, 20) + WholeRun(2995, 30));
  EXPECT_EQ(profile.runs, 3U);
  EXPECT_EQ(profile.run_median, 30us);
  ASSERT_EQ(profile.nodes.size(), 1U);
  EXPECT_EQ(profile.nodes[0].op, "Conv");
  EXPECT_EQ(profile.nodes[0].name, "a");
  EXPECT_EQ(profile.nodes[0].provider, "CPUExecutionProvider");
  EXPECT_EQ(profile.nodes[0].count, 3U);
  EXPECT_EQ(profile.nodes[0].total, 60us);
  EXPECT_EQ(profile.nodes[0].median, 20us);
}

TEST(OrtProfile, CountsNoMoreRunsThanAsked) {
  const SessionProfile profile = Read(
      WholeRun(0, 10) + Node("a", "Add", 22, 5) + WholeRun(20, 10) + Node("a", "Add", 42, 5) + WholeRun(40, 10), 1);
  EXPECT_EQ(profile.runs, 1U);
  EXPECT_EQ(profile.nodes.at(0).count, 1U);
}

TEST(OrtProfile, NodesOfASubgraphStandForThemselves) {
  // They are written before the node that they are in.
  const SessionProfile profile =
      Read(WholeRun(0, 10) + Node("body", "MatMul", 110, 40) + Node("body", "MatMul", 150, 41) +
           Node("loop", "Loop", 105, 85) + Node("after", "Relu", 191, 7) + WholeRun(100, 100));
  ASSERT_EQ(profile.nodes.size(), 3U);
  EXPECT_EQ(profile.nodes[0].name, "body");
  EXPECT_EQ(profile.nodes[0].total, 81us);
  EXPECT_EQ(profile.nodes[1].name, "after");
  EXPECT_EQ(profile.nodes[1].total, 7us);
  EXPECT_EQ(profile.nodes[2].name, "loop");
  EXPECT_EQ(profile.nodes[2].total, 4us);
}

TEST(OrtProfile, ANameThatBreaksItsLineSpoilsNoOther) {
  const SessionProfile profile = Read(WholeRun(0, 10) + Node("say \"a\"", "Add", 101, 5) + Node("b", "Add", 107, 5) +
                                      Node("long", "Add", 113, 2'000'000'000) + WholeRun(100, 20));
  EXPECT_EQ(profile.unread, 1U);
  ASSERT_EQ(profile.nodes.size(), 1U);
  EXPECT_EQ(profile.nodes[0].name, "b");
}

TEST(OrtProfile, OneRunOrNothingIsNoProfile) {
  EXPECT_EQ(Read("").runs, 0U);
  EXPECT_EQ(Read("garbage\n{\"cat\":\"Node\"}\n[]\n7\n").runs, 0U);
  EXPECT_TRUE(Read(Node("a", "Add", 1, 1) + WholeRun(0, 10)).nodes.empty());
}

class OrtProfileTest : public SessionTest {};

TEST_F(OrtProfileTest, ASessionWritesWhatItsNodesTook) {
  const std::filesystem::path folder = folder_.path() / "profile";
  std::filesystem::create_directory(folder);
  auto session = Load(fakes::MlpModel(), {.profile = folder / "p"});
  ASSERT_TRUE(session);
  for (int i = 0; i < 4; ++i) Compute(*session, {Floats("x", {2, 64}, std::vector<float>(128, 0.5F))});
  session.reset();
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) files.push_back(file.path());
  ASSERT_EQ(files.size(), 1U);
  std::ifstream in(files[0]);
  const SessionProfile profile = ReadOrtProfile(in, 3);
  EXPECT_EQ(profile.runs, 3U);
  EXPECT_EQ(profile.unread, 0U);
  EXPECT_FALSE(profile.nodes.empty());
  for (const NodeProfile& node : profile.nodes) {
    EXPECT_EQ(node.count, 3U) << node.name;
    EXPECT_THAT(node.op, ::testing::HasSubstr("Gemm"));
    EXPECT_EQ(node.provider, "CPUExecutionProvider");
  }
}

}  // namespace
}  // namespace tandem
