#include "runtimes/onnx/node_list.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/fakes/onnx_writer.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class NodeListTest : public testing::Test {
 protected:
  ~NodeListTest() override { fs::remove(file_); }
  const fs::path file_ = fs::temp_directory_path() / ("tandem-nodes-" + std::to_string(::getpid()) + ".onnx");
};

TEST_F(NodeListTest, NamesOperatorsAndNodesInOrder) {
  fakes::OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"n"})
      .Output("y", DataType::kFp32, {"n"})
      .Node("Relu", {"x"}, {"r"})
      .Node("Exp", {"r"}, {"y"});
  model.WriteTo(file_);
  const auto nodes = ListOnnxNodes(file_);
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].op, "Relu");
  EXPECT_EQ((*nodes)[0].domain, "");
  EXPECT_EQ((*nodes)[0].name, "Relu_r");
  EXPECT_EQ((*nodes)[1].op, "Exp");
}

TEST_F(NodeListTest, AFileThatIsNoModelIsNamed) {
  std::ofstream(file_) << "\x3a\xff\xff\xff\xff\x0f not a model";
  const auto nodes = ListOnnxNodes(file_);
  ASSERT_FALSE(nodes);
  EXPECT_NE(nodes.error().message.find(file_.filename().string()), std::string::npos) << nodes.error().message;
  EXPECT_FALSE(ListOnnxNodes("/nowhere/model.onnx"));
}

}  // namespace
}  // namespace tandem
