#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/base/data_type.h"
#include "api/base/shape.h"

namespace tandem::fakes {

// Writes small ONNX models without any ONNX library, for tests:
//
//   OnnxModel model;
//   model.graph.Input("x", DataType::kFp32, {"batch", 4})
//       .Output("y", DataType::kFp32, {"batch", 4})
//       .Node("Relu", {"x"}, {"y"});
//   model.WriteTo(folder / "model.onnx");
//
// Ready-made models stand at the end of this file.

// A dimension: a size, a name ("batch", equal names are equal sizes), or "" for unknown.
struct OnnxDim {
  OnnxDim(std::int64_t size) : size(size) {}                 // NOLINT: so that {"batch", 4} reads well.
  OnnxDim(int size) : size(size) {}                          // NOLINT
  OnnxDim(const char* symbol) : size(-1), symbol(symbol) {}  // NOLINT

  std::int64_t size;
  std::string symbol;
};
using OnnxDims = std::vector<OnnxDim>;

// Constant data in the layout of the protocol's tensors; `strings` instead of `data` for kBytes.
struct OnnxTensor {
  DataType type = DataType::kFp32;
  Shape shape;
  std::string data;
  std::vector<std::string> strings;

  static OnnxTensor Floats(Shape shape, const std::vector<float>& values);
  static OnnxTensor Ints(Shape shape, const std::vector<std::int64_t>& values);
  static OnnxTensor Bool(bool value);
};

// Where the data of an initializer lies when not in the model. Zero length: not said.
struct OnnxExternal {
  std::string location;
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

class OnnxGraph;
using OnnxValue = std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                               OnnxTensor, std::shared_ptr<const OnnxGraph>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxValue>>;

class OnnxGraph {
 public:
  explicit OnnxGraph(std::string name = "graph") : name_(std::move(name)) {}

  OnnxGraph& Input(const std::string& name, DataType type, const OnnxDims& dims);
  // Of ONNX's type optional(tensor).
  OnnxGraph& OptionalInput(const std::string& name, DataType type, const OnnxDims& dims);
  OnnxGraph& Output(const std::string& name, DataType type, const OnnxDims& dims);
  // Of ONNX's type sequence(tensor).
  OnnxGraph& SequenceOutput(const std::string& name, DataType type, const OnnxDims& dims);
  // An output with a type by number of TensorProto.DataType, for types that the protocol lacks.
  OnnxGraph& RawOutput(const std::string& name, int element_type, const OnnxDims& dims);
  OnnxGraph& Initializer(const std::string& name, const OnnxTensor& tensor);
  OnnxGraph& Initializer(const std::string& name, DataType type, const Shape& shape, const OnnxExternal& external);
  OnnxGraph& Node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs, const OnnxAttributes& attributes = {},
                  const std::string& domain = "");

  [[nodiscard]] std::string Serialize() const;

 private:
  std::string name_;
  std::string nodes_, initializers_, inputs_, outputs_;  // In wire format.
};

struct OnnxModel {
  OnnxGraph graph;
  std::int64_t ir_version = 8;
  std::int64_t opset = 17;  // 0: none is written.

  [[nodiscard]] std::string Serialize() const;
  // Makes the folders on the way.
  void WriteTo(const std::filesystem::path& path) const;
};

void WriteFile(const std::filesystem::path& path, const std::string& bytes);

// Wire format by hand, for models that are wrong on purpose.
[[nodiscard]] std::string WireVarint(std::uint64_t value);
[[nodiscard]] std::string WireNumber(std::uint32_t field, std::uint64_t value);
[[nodiscard]] std::string WireBytes(std::uint32_t field, const std::string& bytes);

// y = x, of any type.
[[nodiscard]] OnnxModel IdentityModel(DataType type, const OnnxDims& dims = {"batch", 4});
// sum = a + b, FP32 [batch,4].
[[nodiscard]] OnnxModel AddModel();
// y = relu(x·W1 + b1)·W2 + b2, FP32 [batch,64] to [batch,64]; the same weights for the same seed.
[[nodiscard]] OnnxModel MlpModel(std::uint32_t seed = 1);
// y = x + bias, FP32 [batch,4]; `bias` [4] is a graph input with the default value {1,2,3,4}.
[[nodiscard]] OnnxModel DefaultInputModel();
// y = x + extra, or y = x without `extra`, FP32 [batch,4]; `extra` is of ONNX's optional type.
[[nodiscard]] OnnxModel OptionalInputModel();
// y = tanh(…tanh(x·W)·W…), as often as `steps` says (INT64 [1]); FP32 [1,256]: as slow as the request asks for.
// A step takes some ten microseconds; a run can be cancelled between steps.
[[nodiscard]] OnnxModel SlowModel();
// y = x + w, FP32 [batch,4], where w = {1,2,3,4} lies in a file of its own: writes model.onnx and weights.bin.
void WriteExternalDataModel(const std::filesystem::path& folder);

}  // namespace tandem::fakes
