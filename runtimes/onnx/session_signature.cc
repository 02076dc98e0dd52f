#include "runtimes/onnx/session_signature.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

struct TypePair {
  ONNXTensorElementDataType ort;
  DataType ours;
};

constexpr std::array<TypePair, kDataTypeCount> kTypes = {{
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, DataType::kBool},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, DataType::kUint8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, DataType::kUint16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, DataType::kUint32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, DataType::kUint64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, DataType::kInt8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, DataType::kInt16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, DataType::kInt32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, DataType::kInt64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, DataType::kFp16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, DataType::kFp32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, DataType::kFp64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, DataType::kBf16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, DataType::kBytes},
}};

std::string_view ElementTypeName(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64: return "complex64";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128: return "complex128";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN: return "float8e4m3fn";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ: return "float8e4m3fnuz";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2: return "float8e5m2";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ: return "float8e5m2fnuz";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4: return "uint4";
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4: return "int4";
    default: return "unknown";
  }
}

std::string_view KindName(ONNXType type) {
  switch (type) {
    case ONNX_TYPE_SEQUENCE: return "a sequence";
    case ONNX_TYPE_MAP: return "a map";
    case ONNX_TYPE_SPARSETENSOR: return "a sparse tensor";
    case ONNX_TYPE_OPTIONAL: return "an optional";
    default: return "of an opaque type";
  }
}

// One kind of value of a session (inputs, outputs, overridable initializers): how to ask for it.
struct ValueGroup {
  std::string_view what;
  OrtStatus*(ORT_API_CALL* count)(const OrtSession*, size_t*);
  OrtStatus*(ORT_API_CALL* name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus*(ORT_API_CALL* type)(const OrtSession*, size_t, OrtTypeInfo**);
};

struct NamedSpec {
  TensorSpec spec;
  std::string batch_name;
};

class SignatureReader {
 public:
  SignatureReader(const OrtApi& api, const OrtSession* session, const std::string& model)
      : api_(api), session_(session), model_(model) {}

  Result<std::size_t> Count(const ValueGroup& group) {
    std::size_t count = 0;
    TANDEM_TRY(CheckOrt(api_, group.count(session_, &count), "signature"));
    return count;
  }

  Result<std::string> Name(const ValueGroup& group, std::size_t index) {
    OrtAllocator* allocator = nullptr;  // Owned by the library.
    TANDEM_TRY(CheckOrt(api_, api_.GetAllocatorWithDefaultOptions(&allocator), "signature"));
    char* raw = nullptr;
    TANDEM_TRY(CheckOrt(api_, group.name(session_, index, allocator, &raw), "signature"));
    std::string name = raw;
    TANDEM_TRY(CheckOrt(api_, api_.AllocatorFree(allocator, raw), "signature"));
    return name;
  }

  Result<NamedSpec> Spec(const ValueGroup& group, std::size_t index, bool may_be_optional) {
    NamedSpec out;
    TANDEM_ASSIGN(out.spec.name, Name(group, index));
    OrtTypeInfo* raw = nullptr;
    TANDEM_TRY(CheckOrt(api_, group.type(session_, index, &raw), "signature"));
    const OrtPtr<OrtTypeInfo> owner(raw, {api_.ReleaseTypeInfo});
    OrtPtr<OrtTypeInfo> contained(nullptr, {api_.ReleaseTypeInfo});
    const OrtTypeInfo* type = raw;

    ONNXType kind = ONNX_TYPE_UNKNOWN;
    TANDEM_TRY(CheckOrt(api_, api_.GetOnnxTypeFromTypeInfo(type, &kind), "signature"));
    if (kind == ONNX_TYPE_OPTIONAL && may_be_optional) {
      const OrtOptionalTypeInfo* optional = nullptr;
      TANDEM_TRY(CheckOrt(api_, api_.CastTypeInfoToOptionalTypeInfo(type, &optional), "signature"));
      OrtTypeInfo* inner = nullptr;
      TANDEM_TRY(CheckOrt(api_, api_.GetOptionalContainedTypeInfo(optional, &inner), "signature"));
      contained.reset(inner);
      type = inner;
      TANDEM_TRY(CheckOrt(api_, api_.GetOnnxTypeFromTypeInfo(type, &kind), "signature"));
      out.spec.optional = true;
    }
    if (kind != ONNX_TYPE_TENSOR) {
      return Fail(ErrorCode::kUnsupported, "model '{}': {} '{}' is {}; only tensors can be served", model_, group.what,
                  Readable(out.spec.name, 100), KindName(kind));
    }
    TANDEM_TRY(ReadTensor(type, group.what, out));
    return out;
  }

 private:
  Status ReadTensor(const OrtTypeInfo* type, std::string_view what, NamedSpec& out) {
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // Owned by `type`.
    TANDEM_TRY(CheckOrt(api_, api_.CastTypeInfoToTensorInfo(type, &tensor), "signature"));
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    TANDEM_TRY(CheckOrt(api_, api_.GetTensorElementType(tensor, &element), "signature"));
    const std::optional<DataType> ours = DataTypeOf(element);
    if (!ours) {
      return Fail(ErrorCode::kUnsupported,
                  "model '{}': {} '{}' has element type {} ({}), which the inference protocol does not have", model_,
                  what, Readable(out.spec.name, 100), ElementTypeName(element), static_cast<int>(element));
    }
    out.spec.type = *ours;

    std::size_t rank = 0;
    TANDEM_TRY(CheckOrt(api_, api_.GetDimensionsCount(tensor, &rank), "signature"));
    if (rank > kMaxRank) {
      return Fail(ErrorCode::kUnsupported, "model '{}': {} '{}' has {} dimensions; at most {} can be served", model_,
                  what, Readable(out.spec.name, 100), rank, kMaxRank);
    }
    out.spec.shape.resize(rank);
    TANDEM_TRY(CheckOrt(api_, api_.GetDimensions(tensor, out.spec.shape.data(), rank), "signature"));
    for (std::int64_t& dimension : out.spec.shape) dimension = std::max<std::int64_t>(dimension, -1);
    if (rank > 0 && out.spec.shape[0] == -1) {
      std::vector<const char*> names(rank);
      TANDEM_TRY(CheckOrt(api_, api_.GetSymbolicDimensions(tensor, names.data(), rank), "signature"));
      if (names[0] != nullptr) out.batch_name = names[0];
    }
    return {};
  }

  const OrtApi& api_;
  const OrtSession* const session_;
  const std::string& model_;
};

// Equal names alone are no batch: tensors may as well share a sequence or a grid, which must not be joined.
bool IsBatchName(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.contains("batch") || name == "N" || lower == "b" || lower == "bs" || lower == "bsz";
}

bool HasNamedBatch(const SessionSignature& signature) {
  if (signature.input_batch_names.empty() || !IsBatchName(signature.input_batch_names.front())) return false;
  const auto same = [&](const std::string& name) { return name == signature.input_batch_names.front(); };
  return std::ranges::all_of(signature.input_batch_names, same) &&
         std::ranges::all_of(signature.output_batch_names, same);
}

}  // namespace

std::optional<DataType> DataTypeOf(ONNXTensorElementDataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.ort == type) return pair.ours;
  }
  return std::nullopt;
}

ONNXTensorElementDataType ElementTypeOf(DataType type) {
  return kTypes[static_cast<std::size_t>(type)].ort;
}

Result<SessionSignature> ReadSignature(const OrtApi& api, const OrtSession* session, const SessionSpec& spec) {
  const std::string& model = spec.name;
  const ValueGroup inputs{"input", api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo};
  const ValueGroup outputs{"output", api.SessionGetOutputCount, api.SessionGetOutputName, api.SessionGetOutputTypeInfo};
  const ValueGroup defaults{"input", api.SessionGetOverridableInitializerCount,
                            api.SessionGetOverridableInitializerName, api.SessionGetOverridableInitializerTypeInfo};
  SignatureReader reader(api, session, model);
  SessionSignature out;
  const auto add_input = [&](NamedSpec named) {
    out.signature.inputs.push_back(std::move(named.spec));
    out.input_batch_names.push_back(std::move(named.batch_name));
  };

  TANDEM_ASSIGN(const std::size_t input_count, reader.Count(inputs));
  for (std::size_t i = 0; i < input_count; ++i) {
    TANDEM_ASSIGN(NamedSpec named, reader.Spec(inputs, i, true));
    add_input(std::move(named));
  }
  TANDEM_ASSIGN(const std::size_t default_count, reader.Count(defaults));
  for (std::size_t i = 0; i < default_count; ++i) {
    TANDEM_ASSIGN(const std::string name, reader.Name(defaults, i));
    if (!std::ranges::contains(spec.optional_inputs, name)) continue;
    TANDEM_ASSIGN(NamedSpec named, reader.Spec(defaults, i, false));
    named.spec.optional = true;
    add_input(std::move(named));
  }
  for (const std::string& name : spec.optional_inputs) {
    const TensorSpec* const input = out.signature.FindInput(name);
    if (input == nullptr || !input->optional) {
      return Invalid(
          "model '{}': input '{}' is said to be optional, but {}", model, Readable(name, 100),
          input == nullptr ? "the graph has no input of that name" : "the graph has no default value for it");
    }
  }
  TANDEM_ASSIGN(const std::size_t output_count, reader.Count(outputs));
  for (std::size_t i = 0; i < output_count; ++i) {
    TANDEM_ASSIGN(const std::string name, reader.Name(outputs, i));
    if (out.signature.FindOutput(name) != nullptr) {
      return Invalid("model '{}': the graph lists output '{}' twice", model, Readable(name, 100));
    }
    auto named = reader.Spec(outputs, i, false);
    const bool asked_for = spec.outputs.empty() || std::ranges::contains(spec.outputs, name);
    if (!named && named.error().code == ErrorCode::kUnsupported && !asked_for) continue;
    if (!named) return std::unexpected(std::move(named).error());
    out.signature.outputs.push_back(std::move(named->spec));
    out.output_batch_names.push_back(std::move(named->batch_name));
  }
  out.signature.named_batch = HasNamedBatch(out);
  return out;
}

}  // namespace tandem
