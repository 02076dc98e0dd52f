#include "server/grpc/control_messages.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "api/wire/json_text.h"

namespace tandem::grpc_front {
namespace {

constexpr std::string_view kFilePrefix = "file:";

void FillTensors(const std::vector<TensorSpec>& specs,
                 google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& messages) {
  for (const TensorSpec& spec : specs) {
    auto& tensor = *messages.Add();
    tensor.set_name(spec.name);
    tensor.set_datatype(std::string(DataTypeName(spec.type)));
    tensor.mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  }
}

void FillDuration(const DurationTotal& total, inference::StatisticDuration* message) {
  message->set_count(total.count);
  message->set_ns(total.ns);
}

}  // namespace

void Fill(const ServerInfo& info, inference::ServerMetadataResponse& message) {
  message.set_name(info.name);
  message.set_version(info.version);
  for (const std::string& extension : info.extensions) message.add_extensions(extension);
}

void Fill(const Servable& servable, const std::string& platform, std::span<const std::string> versions,
          inference::ModelMetadataResponse& message) {
  message.set_name(servable.name());
  message.set_platform(platform);
  for (const std::string& version : versions) message.add_versions(version);
  FillTensors(servable.signature().inputs, *message.mutable_inputs());
  FillTensors(servable.signature().outputs, *message.mutable_outputs());
}

void Fill(const std::string& name, const std::string& version, const ModelTotals& totals,
          inference::ModelStatistics& message) {
  message.set_name(name);
  message.set_version(version);
  message.set_last_inference(totals.last_inference_ms);
  message.set_inference_count(totals.inference_count);
  message.set_execution_count(totals.execution_count);
  inference::InferStatistics& durations = *message.mutable_inference_stats();
  FillDuration(totals.success, durations.mutable_success());
  FillDuration(totals.fail, durations.mutable_fail());
  FillDuration(totals.queue, durations.mutable_queue());
  FillDuration(totals.compute_input, durations.mutable_compute_input());
  FillDuration(totals.compute_infer, durations.mutable_compute_infer());
  FillDuration(totals.compute_output, durations.mutable_compute_output());
  FillDuration({}, durations.mutable_cache_hit());
  FillDuration({}, durations.mutable_cache_miss());
  for (const auto& [size, batch] : totals.batches) {
    inference::InferBatchStatistics& entry = *message.add_batch_stats();
    entry.set_batch_size(size);
    FillDuration(batch.compute_input, entry.mutable_compute_input());
    FillDuration(batch.compute_infer, entry.mutable_compute_infer());
    FillDuration(batch.compute_output, entry.mutable_compute_output());
  }
}

void Fill(std::span<const repository::IndexEntry> entries, inference::RepositoryIndexResponse& message) {
  for (const repository::IndexEntry& entry : entries) {
    auto& model = *message.add_models();
    model.set_name(entry.name);
    model.set_version(entry.version);
    model.set_state(std::string(repository::ModelStateName(entry.state)));
    model.set_reason(entry.reason);
  }
}

Result<repository::LoadOptions> TakeLoadOptions(inference::RepositoryModelLoadRequest& message) {
  TANDEM_TRY(CheckRepositoryName(message.repository_name()));
  repository::LoadOptions options;
  for (auto& [key, value] : *message.mutable_parameters()) {
    if (key == "config") {
      if (!value.has_string_param()) return Invalid("parameter 'config' must be a string (string_param)");
      options.config_json = std::move(*value.mutable_string_param());
    } else if (key.starts_with(kFilePrefix)) {
      if (!value.has_bytes_param()) return Invalid("parameter '{}' must be bytes (bytes_param)", Excerpt(key));
      options.files.emplace(key.substr(kFilePrefix.size()), std::move(*value.mutable_bytes_param()));
    } else {
      return Invalid("unknown parameter '{}'; known: config, file:<version>/<file>", Excerpt(key));
    }
  }
  return options;
}

Status CheckUnload(const inference::RepositoryModelUnloadRequest& message) {
  TANDEM_TRY(CheckRepositoryName(message.repository_name()));
  for (const auto& [key, value] : message.parameters()) {
    if (key != "unload_dependents") return Invalid("unknown parameter '{}'; known: unload_dependents", Excerpt(key));
    if (!value.has_bool_param()) return Invalid("parameter 'unload_dependents' must be a boolean (bool_param)");
  }
  return {};
}

Status CheckRepositoryName(const std::string& name) {
  if (name.empty()) return {};
  return Fail(ErrorCode::kUnsupported, "repository_name '{}' is not supported: leave it empty", Excerpt(name));
}

void Fill(std::span<const std::shared_ptr<const SharedRegion>> regions,
          inference::SystemSharedMemoryStatusResponse& message) {
  for (const auto& region : regions) {
    auto& status = (*message.mutable_regions())[region->name()];
    status.set_name(region->name());
    status.set_key(region->key());
    status.set_offset(region->offset());
    status.set_byte_size(region->byte_size());
  }
}

Result<LogSettings::Values> ReadLogChanges(const inference::LogSettingsRequest& message) {
  using Setting = inference::LogSettingsRequest::SettingValue;
  LogSettings::Values changes;
  for (const auto& [key, value] : message.settings()) {
    switch (value.parameter_choice_case()) {
      case Setting::kBoolParam: changes[key] = value.bool_param(); break;
      case Setting::kUint32Param: changes[key] = value.uint32_param(); break;
      case Setting::kStringParam: changes[key] = value.string_param(); break;
      case Setting::PARAMETER_CHOICE_NOT_SET: return Invalid("log setting '{}' has no value", Excerpt(key));
    }
  }
  return changes;
}

void Fill(const LogSettings::Values& values, inference::LogSettingsResponse& message) {
  for (const auto& [key, value] : values) {
    auto& setting = (*message.mutable_settings())[key];
    if (const bool* flag = std::get_if<bool>(&value)) setting.set_bool_param(*flag);
    if (const std::uint32_t* number = std::get_if<std::uint32_t>(&value)) setting.set_uint32_param(*number);
    if (const std::string* text = std::get_if<std::string>(&value)) setting.set_string_param(*text);
  }
}

TraceSettings::Changes ReadTraceChanges(const inference::TraceSettingRequest& message) {
  TraceSettings::Changes changes;
  for (const auto& [key, setting] : message.settings()) {
    if (setting.value().empty()) {
      changes[key] = std::nullopt;
    } else {
      changes[key] = std::vector<std::string>(setting.value().begin(), setting.value().end());
    }
  }
  return changes;
}

void Fill(const TraceSettings::Values& values, inference::TraceSettingResponse& message) {
  for (const auto& [key, list] : values) {
    auto& setting = (*message.mutable_settings())[key];
    for (const std::string& value : list) setting.add_value(value);
  }
}

}  // namespace tandem::grpc_front
