#include "runtimes/training/ops/tensor_proto.h"

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include <ATen/ops/empty.h>

namespace tandem::training {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie");

// What `proto` keeps in a field of a wider type, one element each.
template <typename Narrow, typename Field>
void CopyField(const Field& field, at::Tensor& tensor) {
  auto* out = static_cast<Narrow*>(tensor.data_ptr());
  for (const auto value : field) *out++ = static_cast<Narrow>(value);
}

std::int64_t FieldSize(const onnx::TensorProto& proto) {
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT: return proto.float_data_size();
    case onnx::TensorProto::DOUBLE: return proto.double_data_size();
    case onnx::TensorProto::INT64: return proto.int64_data_size();
    default: return proto.int32_data_size();
  }
}

void CopyFields(const onnx::TensorProto& proto, at::Tensor& tensor) {
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT: return CopyField<float>(proto.float_data(), tensor);
    case onnx::TensorProto::DOUBLE: return CopyField<double>(proto.double_data(), tensor);
    case onnx::TensorProto::INT64: return CopyField<std::int64_t>(proto.int64_data(), tensor);
    case onnx::TensorProto::INT32: return CopyField<std::int32_t>(proto.int32_data(), tensor);
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::FLOAT16:  // Its bits.
    case onnx::TensorProto::BFLOAT16: return CopyField<std::uint16_t>(proto.int32_data(), tensor);
    default: return CopyField<std::uint8_t>(proto.int32_data(), tensor);
  }
}

}  // namespace

Result<at::ScalarType> ScalarTypeOf(int onnx_type) {
  switch (onnx_type) {
    case onnx::TensorProto::FLOAT: return at::kFloat;
    case onnx::TensorProto::DOUBLE: return at::kDouble;
    case onnx::TensorProto::FLOAT16: return at::kHalf;
    case onnx::TensorProto::BFLOAT16: return at::kBFloat16;
    case onnx::TensorProto::INT64: return at::kLong;
    case onnx::TensorProto::INT32: return at::kInt;
    case onnx::TensorProto::INT16: return at::kShort;
    case onnx::TensorProto::INT8: return at::kChar;
    case onnx::TensorProto::UINT8: return at::kByte;
    case onnx::TensorProto::BOOL: return at::kBool;
    default: break;
  }
  const std::string name = onnx::TensorProto::DataType_IsValid(onnx_type)
                               ? onnx::TensorProto::DataType_Name(onnx::TensorProto::DataType(onnx_type))
                               : std::to_string(onnx_type);
  return Fail(ErrorCode::kUnsupported, "element type {} is not supported in training", name);
}

Result<int> OnnxTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return onnx::TensorProto::FLOAT;
    case at::kDouble: return onnx::TensorProto::DOUBLE;
    case at::kHalf: return onnx::TensorProto::FLOAT16;
    case at::kBFloat16: return onnx::TensorProto::BFLOAT16;
    case at::kLong: return onnx::TensorProto::INT64;
    case at::kInt: return onnx::TensorProto::INT32;
    case at::kShort: return onnx::TensorProto::INT16;
    case at::kChar: return onnx::TensorProto::INT8;
    case at::kByte: return onnx::TensorProto::UINT8;
    case at::kBool: return onnx::TensorProto::BOOL;
    default: return Fail(ErrorCode::kUnsupported, "ONNX has no element type for {}", c10::toString(type));
  }
}

Result<at::Tensor> ReadTensor(const onnx::TensorProto& proto) {
  TANDEM_ASSIGN(const at::ScalarType type, ScalarTypeOf(proto.data_type()));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return Fail(ErrorCode::kInternal, "tensor '{}' still has its data in another file", proto.name());
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : proto.dims()) {
    if (size < 0 || (size > 0 && elements > std::numeric_limits<std::int32_t>::max() * std::int64_t{64} / size)) {
      return Invalid("tensor '{}' has a dimension of {}", proto.name(), size);
    }
    elements *= size;
  }
  const auto bytes = static_cast<std::uint64_t>(elements) * c10::elementSize(type);
  const bool raw = proto.has_raw_data();
  if (raw ? proto.raw_data().size() != bytes : FieldSize(proto) != elements) {
    return Invalid("tensor '{}' has {} {} and its shape needs {}", proto.name(),
                   raw ? proto.raw_data().size() : static_cast<std::uint64_t>(FieldSize(proto)),
                   raw ? "bytes" : "elements", raw ? bytes : static_cast<std::uint64_t>(elements));
  }
  const std::vector<std::int64_t> shape(proto.dims().begin(), proto.dims().end());
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
  if (bytes == 0) return tensor;
  if (raw) {
    std::memcpy(tensor.data_ptr(), proto.raw_data().data(), bytes);
  } else {
    CopyFields(proto, tensor);
  }
  return tensor;
}

Status WriteTensor(const at::Tensor& tensor, onnx::TensorProto& proto) {
  TANDEM_ASSIGN(const at::ScalarType type, ScalarTypeOf(proto.data_type()));
  const at::Tensor values = tensor.detach().to(type).contiguous();
  proto.clear_float_data();
  proto.clear_double_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_external_data();
  proto.clear_data_location();
  proto.clear_dims();
  for (const std::int64_t size : values.sizes()) proto.add_dims(size);
  proto.set_raw_data(values.data_ptr(), values.nbytes());
  return {};
}

}  // namespace tandem::training
