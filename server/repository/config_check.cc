#include "server/repository/config_check.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "api/wire/proto/model_config.pb.h"
#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

using inference::ModelConfig;
using inference::ModelInstanceGroup;

constexpr std::uint64_t kMaxDelayMicroseconds = 86'400'000'000;  // A day: beyond it, a slip of the pen.
constexpr std::size_t kMaxTensors = 4096;

std::unexpected<Error> Unsupported(std::string_view field) {
  return Fail(ErrorCode::kUnsupported, "config field {} is not supported by this server", field);
}

Status CheckPlatform(const ModelConfig& config) {
  constexpr std::array<std::string_view, 3> kPlatforms = {"", "onnxruntime_onnx", "tensorrt_plan"};
  constexpr std::array<std::string_view, 3> kBackends = {"", "onnxruntime", "tensorrt"};
  if (!std::ranges::contains(kPlatforms, std::string_view(config.platform()))) {
    return Fail(ErrorCode::kUnsupported,
                "config field platform '{}' is not supported: this server runs "
                "onnxruntime_onnx and tensorrt_plan",
                Quotable(config.platform()));
  }
  if (!std::ranges::contains(kBackends, std::string_view(config.backend()))) {
    return Fail(ErrorCode::kUnsupported,
                "config field backend '{}' is not supported: this server has onnxruntime and "
                "tensorrt",
                Quotable(config.backend()));
  }
  const bool plan = config.platform() == "tensorrt_plan";
  if (!config.platform().empty() && !config.backend().empty() && plan != (config.backend() == "tensorrt")) {
    return Invalid("config says platform '{}' and backend '{}', which contradict each other", config.platform(),
                   config.backend());
  }
  return {};
}

Status CheckFeatures(const ModelConfig& config) {
  if (config.has_sequence_batching()) return Unsupported("sequence_batching");
  if (config.has_ensemble_scheduling()) return Unsupported("ensemble_scheduling");
  if (config.model_transaction_policy().decoupled()) return Unsupported("model_transaction_policy.decoupled");
  if (config.response_cache().enable()) return Unsupported("response_cache.enable");
  if (config.batch_input_size() > 0) return Unsupported("batch_input");
  if (config.batch_output_size() > 0) return Unsupported("batch_output");
  if (config.cc_model_filenames_size() > 0) return Unsupported("cc_model_filenames");
  if (config.model_operations().op_library_filename_size() > 0) {
    return Unsupported("model_operations.op_library_filename");
  }
  if (config.model_repository_agents().agents_size() > 0) return Unsupported("model_repository_agents");
  for (const auto& input : config.input()) {
    if (input.is_shape_tensor()) return Unsupported("input.is_shape_tensor");
    if (input.allow_ragged_batch()) return Unsupported("input.allow_ragged_batch");
    if (input.is_non_linear_format_io()) return Unsupported("input.is_non_linear_format_io");
  }
  for (const auto& output : config.output()) {
    if (output.is_shape_tensor()) return Unsupported("output.is_shape_tensor");
    if (output.is_non_linear_format_io()) return Unsupported("output.is_non_linear_format_io");
  }
  return {};
}

Status CheckDelay(std::string_view field, std::uint64_t microseconds) {
  if (microseconds <= kMaxDelayMicroseconds) return {};
  return Invalid("config field {} is {}; at most {} (one day) is allowed", field, microseconds, kMaxDelayMicroseconds);
}

Status CheckBatching(const ModelConfig& config) {
  if (config.max_batch_size() < 0) return Invalid("config field max_batch_size is {}", config.max_batch_size());
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  for (const std::int32_t size : batching.preferred_batch_size()) {
    if (size <= 0) return Invalid("config field dynamic_batching.preferred_batch_size holds {}", size);
  }
  TANDEM_TRY(CheckDelay("dynamic_batching.max_queue_delay_microseconds", batching.max_queue_delay_microseconds()));
  TANDEM_TRY(CheckDelay("dynamic_batching.default_queue_policy.default_timeout_microseconds",
                        batching.default_queue_policy().default_timeout_microseconds()));
  if (batching.default_queue_policy().timeout_action() != inference::ModelQueuePolicy::REJECT) {
    return Unsupported("dynamic_batching.default_queue_policy.timeout_action DELAY");
  }
  if (batching.priority_queue_policy_size() > 0) return Unsupported("dynamic_batching.priority_queue_policy");
  if (batching.priority_levels() > std::numeric_limits<std::uint32_t>::max()) {
    return Invalid("config field dynamic_batching.priority_levels is {}", batching.priority_levels());
  }
  const std::uint64_t lowest = batching.priority_levels() > 0 ? 1 : 0;
  if (batching.default_priority_level() < lowest || batching.default_priority_level() > batching.priority_levels()) {
    return Invalid(
        "config field dynamic_batching.default_priority_level is {}; with priority_levels {} it must be "
        "from {} to {}",
        batching.default_priority_level(), batching.priority_levels(), lowest, batching.priority_levels());
  }
  return {};
}

template <typename Spec>
Status CheckTensors(std::string_view kind, const google::protobuf::RepeatedPtrField<Spec>& specs) {
  if (static_cast<std::size_t>(specs.size()) > kMaxTensors) return Invalid("config lists {} {}s", specs.size(), kind);
  for (int i = 0; i < specs.size(); ++i) {
    const Spec& spec = specs[i];
    if (spec.name().empty()) return Invalid("config {} number {} has no name", kind, i + 1);
    for (int earlier = 0; earlier < i; ++earlier) {
      if (specs[earlier].name() == spec.name()) {
        return Invalid("config lists {} '{}' twice", kind, Quotable(spec.name()));
      }
    }
    if (!inference::DataType_IsValid(spec.data_type())) {
      return Invalid("config says {} '{}' has data_type {}, which is none", kind, Quotable(spec.name()),
                     static_cast<int>(spec.data_type()));
    }
    if (static_cast<std::size_t>(spec.dims_size()) > kMaxRank ||
        static_cast<std::size_t>(spec.reshape().shape_size()) > kMaxRank) {
      return Invalid("config {} '{}' has {} dims; at most {} are allowed", kind, Quotable(spec.name()),
                     spec.dims_size(), kMaxRank);
    }
    const auto wrong = [](std::int64_t dim) { return dim == 0 || dim < -1; };
    if (std::ranges::any_of(spec.dims(), wrong) || std::ranges::any_of(spec.reshape().shape(), wrong)) {
      return Invalid("config {} '{}' has dims {} reshape {}; a dimension is positive, or -1 for variable", kind,
                     Quotable(spec.name()), ShapeText(std::vector(spec.dims().begin(), spec.dims().end())),
                     ShapeText(std::vector(spec.reshape().shape().begin(), spec.reshape().shape().end())));
    }
  }
  return {};
}

Status CheckInstances(const ModelConfig& config) {
  for (const ModelInstanceGroup& group : config.instance_group()) {
    if (group.count() < 0) return Invalid("config field instance_group.count is {}", group.count());
    if (group.passive()) return Unsupported("instance_group.passive");
    if (!ModelInstanceGroup::Kind_IsValid(group.kind())) {
      return Invalid("config field instance_group.kind is {}", static_cast<int>(group.kind()));
    }
    for (const std::int32_t gpu : group.gpus()) {
      if (gpu < 0) return Invalid("config field instance_group.gpus holds {}", gpu);
    }
    if (group.kind() == ModelInstanceGroup::KIND_CPU && group.gpus_size() > 0) {
      return Invalid("config says instance_group.kind KIND_CPU and lists gpus, which contradict each other");
    }
    if (group.gpus_size() > 1) return Unsupported("instance_group.gpus with more than one device");
  }
  return {};
}

bool IsHarmlessOption(std::string_view name) {
  static constexpr std::array<std::string_view, 32> kNames = {
      // CUDA
      "arena_extend_strategy", "cudnn_conv1d_pad_to_nc1d", "cudnn_conv_algo_search", "cudnn_conv_use_max_workspace",
      "device_id", "do_copy_in_default_stream", "enable_cuda_graph", "enable_skip_layer_norm_strict_mode",
      "fuse_conv_bias", "gpu_mem_limit", "prefer_nhwc", "sdpa_kernel", "tunable_op_enable", "tunable_op_tuning_enable",
      "use_tf32",
      // TensorRT
      "trt_auxiliary_streams", "trt_bf16_enable", "trt_build_heuristics_enable", "trt_builder_optimization_level",
      "trt_context_memory_sharing_enable", "trt_cuda_graph_enable", "trt_fp16_enable", "trt_layer_norm_fp32_fallback",
      "trt_max_partition_iterations", "trt_max_workspace_size", "trt_min_subgraph_size", "trt_profile_max_shapes",
      "trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_sparsity_enable", "trt_int8_enable",
      // oneDNN
      "use_arena"};
  return std::ranges::contains(kNames, name);
}

// The path of a string in a message that is not UTF-8: nothing that shows the configuration could send it.
std::string FindBrokenText(const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!text && field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (!text) {
        const auto& inner = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                 : reflection.GetMessage(message, field);
        const std::string found = FindBrokenText(inner);
        if (!found.empty()) return std::string(field->name()) + "." + found;
        continue;
      }
      const std::string value =
          field->is_repeated() ? reflection.GetRepeatedString(message, field, i) : reflection.GetString(message, field);
      if (!IsUtf8(value)) return std::string(field->name());
    }
  }
  return "";
}

// KIND_MODEL leaves the choice to the model, which for us is the same as no choice.
DeviceKind DeviceOf(const ModelInstanceGroup& group) {
  if (group.kind() == ModelInstanceGroup::KIND_CPU) return DeviceKind::kCpu;
  if (group.kind() == ModelInstanceGroup::KIND_GPU || group.gpus_size() > 0) return DeviceKind::kGpu;
  return DeviceKind::kAuto;
}

void AddAccelerators(const google::protobuf::RepeatedPtrField<
                         inference::ModelOptimizationPolicy::ExecutionAccelerators::Accelerator>& accelerators,
                     std::vector<ProviderChoice>& providers) {
  for (const auto& accelerator : accelerators) {
    providers.push_back({accelerator.name(), {accelerator.parameters().begin(), accelerator.parameters().end()}});
  }
}

}  // namespace

Status CheckSentConfig(const ModelConfig& config) {
  const auto& accelerators = config.optimization().execution_accelerators();
  for (const auto& list : {accelerators.gpu_execution_accelerator(), accelerators.cpu_execution_accelerator()}) {
    for (const auto& accelerator : list) {
      for (const auto& [name, value] : accelerator.parameters()) {
        if (IsHarmlessOption(name)) continue;
        return Invalid("config gives provider '{}' the option '{}', which is only taken from a file in the repository",
                       Quotable(accelerator.name()), Quotable(name));
      }
    }
  }
  return {};
}

Status CheckConfig(std::string_view model_name, const ModelConfig& config) {
  if (const std::string field = FindBrokenText(config); !field.empty()) {
    return Invalid("config field {} is not valid UTF-8", field);
  }
  if (!config.name().empty() && config.name() != model_name) {
    return Invalid("config says name '{}', the model's folder is '{}'", Quotable(config.name()), Quotable(model_name));
  }
  TANDEM_TRY(CheckPlatform(config));
  TANDEM_TRY(CheckFeatures(config));
  TANDEM_TRY(CheckBatching(config));
  TANDEM_TRY(CheckTensors("input", config.input()));
  TANDEM_TRY(CheckTensors("output", config.output()));
  return CheckInstances(config);
}

Result<SessionRequest> DescribeSession(const ModelConfig& config, const std::vector<ProviderChoice>& defaults) {
  SessionRequest request;
  const auto& accelerators = config.optimization().execution_accelerators();
  for (const ModelInstanceGroup& group : config.instance_group()) {
    const DeviceKind device = DeviceOf(group);
    if (&group != &config.instance_group(0) && device != request.device) {
      return Fail(ErrorCode::kUnsupported,
                  "config field instance_group names both CPU and GPU groups; one kind of "
                  "device per model is supported");
    }
    request.device = device;
    if (group.gpus_size() > 0) request.gpu = group.gpus(0);
  }
  if (request.device == DeviceKind::kAuto && accelerators.gpu_execution_accelerator_size() > 0 &&
      accelerators.cpu_execution_accelerator_size() == 0) {
    request.device = DeviceKind::kGpu;
  }
  if (request.device == DeviceKind::kGpu) {
    AddAccelerators(accelerators.gpu_execution_accelerator(), request.providers);
    if (std::ranges::none_of(request.providers, [](const ProviderChoice& p) { return p.name == "cuda"; })) {
      request.providers.push_back({"cuda", {}});
    }
  } else {
    AddAccelerators(accelerators.cpu_execution_accelerator(), request.providers);
  }
  // Somebody who wrote KIND_CPU for this model means it, whatever the server's own default is.
  if (request.providers.empty() && request.device == DeviceKind::kAuto) request.providers = defaults;
  for (const auto& input : config.input()) {
    if (input.optional()) request.optional_inputs.push_back(input.name());
  }
  for (const auto& output : config.output()) request.outputs.push_back(output.name());
  if (config.optimization().has_graph()) request.graph_level = config.optimization().graph().level();
  return request;
}

Status CheckFormat(const ModelConfig& config, const ModelFile& file) {
  const bool is_plan = file.format == ModelFormat::kTensorRtPlan;
  const bool says_plan = config.platform() == "tensorrt_plan" || config.backend() == "tensorrt";
  const bool says_onnx = config.platform() == "onnxruntime_onnx" || config.backend() == "onnxruntime";
  if ((is_plan && says_onnx) || (!is_plan && says_plan)) {
    return Invalid("config says platform '{}' backend '{}', the model's file is '{}'", config.platform(),
                   config.backend(), file.path.filename().string());
  }
  return {};
}

}  // namespace tandem::repository
