#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/result.h"

namespace tandem::training {

// One node of a graph as the maker of its kernel sees it. Every attribute that is read is taken off the list of those
// that nobody knows; CheckAllRead() refuses what is left, so that no kernel passes over a meaning in silence. Borrows
// the node. One thread.
class NodeView {
 public:
  // `opset` is the version of the standard operators that the graph was written for.
  NodeView(const onnx::NodeProto& node, int opset) : node_(node), opset_(opset) {}

  [[nodiscard]] const std::string& op() const { return node_.op_type(); }
  [[nodiscard]] int opset() const { return opset_; }
  [[nodiscard]] int inputs() const { return node_.input_size(); }
  [[nodiscard]] int outputs() const { return node_.output_size(); }
  // Whether the node has it and does not leave it out.
  [[nodiscard]] bool HasInput(int index) const { return index < inputs() && !node_.input(index).empty(); }
  [[nodiscard]] bool HasOutput(int index) const { return index < outputs() && !node_.output(index).empty(); }

  [[nodiscard]] bool Has(std::string_view name) const;
  [[nodiscard]] std::int64_t Int(std::string_view name, std::int64_t absent);
  [[nodiscard]] double Float(std::string_view name, double absent);
  [[nodiscard]] std::string Text(std::string_view name, std::string_view absent);
  // Empty when it is not there.
  [[nodiscard]] std::vector<std::int64_t> Ints(std::string_view name);
  [[nodiscard]] std::vector<double> Floats(std::string_view name);
  [[nodiscard]] std::vector<std::string> Texts(std::string_view name);
  // A tensor attribute; kInvalidArgument when it cannot be read, nullopt when it is not there.
  [[nodiscard]] Result<std::optional<at::Tensor>> TensorValue(std::string_view name);

  // kUnsupported for the first attribute that was not asked for; kInvalidArgument for one that was read as what it is
  // not.
  [[nodiscard]] Status CheckAllRead() const;

 private:
  // The attribute, which counts as read from now on; null when it is not there or not of this type.
  const onnx::AttributeProto* Take(std::string_view name, onnx::AttributeProto::AttributeType type);

  const onnx::NodeProto& node_;
  const int opset_;
  std::set<std::string, std::less<>> read_;
  std::string mistyped_;  // An attribute that is not of the type that it was read as.
};

}  // namespace tandem::training
