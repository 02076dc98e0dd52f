#include "server/repository/model_settings.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "server/repository/model_name.h"
#include "server/repository/tensor_match.h"

namespace tandem::repository {
namespace {

using inference::ModelConfig;

constexpr double kMaxSloMilliseconds = 86'400'000;  // A day.

// Sets max_batch_size and dynamic batching where the configuration leaves them to us. Only a graph that names its batch
// gets them: joined along any other dimension, the requests of different clients would change each other's results.
void DeriveBatching(const ModelSignature& graph, ModelConfig& config) {
  const bool silent = config.max_batch_size() == 0 && config.input().empty() && config.output().empty();
  if (!silent || !graph.named_batch) return;
  std::int64_t limit = kDerivedMaxBatchSize;
  for (const std::int32_t preferred : config.dynamic_batching().preferred_batch_size()) {
    limit = std::max<std::int64_t>(limit, preferred);
  }
  config.set_max_batch_size(static_cast<std::int32_t>(limit));
  config.mutable_dynamic_batching();
}

Result<BatchSettings> ToBatchSettings(const ModelConfig& config) {
  using std::chrono::microseconds;
  const inference::ModelDynamicBatching& given = config.dynamic_batching();
  BatchSettings settings;
  settings.max_batch_size = config.max_batch_size();
  settings.dynamic = config.has_dynamic_batching() && config.max_batch_size() > 0;
  for (const std::int32_t preferred : given.preferred_batch_size()) {
    if (preferred > config.max_batch_size()) {
      return Invalid("config says dynamic_batching.preferred_batch_size {}, max_batch_size is {}", preferred,
                     config.max_batch_size());
    }
    settings.preferred_sizes.push_back(preferred);
  }
  std::ranges::sort(settings.preferred_sizes);
  settings.max_queue_delay = microseconds(given.max_queue_delay_microseconds());
  settings.priority_levels = static_cast<std::uint32_t>(given.priority_levels());
  settings.default_priority = static_cast<std::uint32_t>(given.default_priority_level());
  settings.max_queue_size = given.default_queue_policy().max_queue_size();
  settings.default_timeout = microseconds(given.default_queue_policy().default_timeout_microseconds());
  return settings;
}

Result<std::optional<std::chrono::microseconds>> ParseSlo(const ModelConfig& config) {
  const auto found = config.parameters().find("slo_ms");
  if (found == config.parameters().end()) return std::nullopt;
  const std::string& text = found->second.string_value();
  double milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  // Written so that NaN is refused too.
  if (error != std::errc() || end != text.data() + text.size() ||
      !(milliseconds > 0 && milliseconds <= kMaxSloMilliseconds)) {
    return Invalid("config parameter slo_ms is '{}'; it must be a positive number of milliseconds, at most one day",
                   Quotable(text));
  }
  const std::chrono::duration<double, std::milli> slo(milliseconds);
  return std::max(std::chrono::ceil<std::chrono::microseconds>(slo), std::chrono::microseconds(1));
}

Result<double> ParseWeight(const ModelConfig& config) {
  constexpr double kLeast = 0.01;
  constexpr double kMost = 100;
  const auto found = config.parameters().find("weight");
  if (found == config.parameters().end()) return 1;
  const std::string& text = found->second.string_value();
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  // Written so that NaN is refused too.
  if (error != std::errc() || end != text.data() + text.size() || !(weight >= kLeast && weight <= kMost)) {
    return Invalid("config parameter weight is '{}'; it must be a number from {} to {}", Quotable(text), kLeast, kMost);
  }
  return weight;
}

void FillNames(std::string_view model_name, const ModelFile& file, ModelConfig& config) {
  const bool plan = file.format == ModelFormat::kTensorRtPlan;
  config.set_name(std::string(model_name));
  config.set_platform(plan ? "tensorrt_plan" : "onnxruntime_onnx");
  config.set_backend(plan ? "tensorrt" : "onnxruntime");
  config.set_default_model_filename(file.path.filename().string());
  *config.mutable_version_policy() = CompletePolicy(config);
  if (config.instance_group().empty()) config.add_instance_group();
  for (inference::ModelInstanceGroup& group : *config.mutable_instance_group()) {
    if (group.name().empty()) group.set_name(std::string(model_name));
    if (group.count() == 0) group.set_count(1);
  }
}

}  // namespace

void NoteOrigin(const std::map<std::string, std::string>& metadata, ModelConfig& config) {
  auto& parameters = *config.mutable_parameters();
  for (const auto& [key, value] : OriginOf(config)) parameters.erase(key);
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kOriginPrefix)) parameters[key].set_string_value(value);
  }
}

std::map<std::string, std::string> OriginOf(const ModelConfig& config) {
  std::map<std::string, std::string> origin;
  for (const auto& [key, value] : config.parameters()) {
    if (key.starts_with(kOriginPrefix)) origin.emplace(key, value.string_value());
  }
  return origin;
}

inference::ModelVersionPolicy CompletePolicy(const ModelConfig& given) {
  inference::ModelVersionPolicy policy = given.version_policy();
  if (policy.policy_choice_case() == inference::ModelVersionPolicy::POLICY_CHOICE_NOT_SET) {
    policy.mutable_latest()->set_num_versions(1);
  }
  return policy;
}

Result<ModelSettings> CompleteSettings(std::string_view model_name, const ModelConfig& given,
                                       const ModelSignature& graph, const ModelFile& file) {
  ModelSettings settings{.config = given};
  DeriveBatching(graph, settings.config);
  TANDEM_TRY(MatchTensors(graph, settings.config, settings.signature));
  TANDEM_ASSIGN(settings.batching, ToBatchSettings(settings.config));
  TANDEM_ASSIGN(settings.batching.weight, ParseWeight(settings.config));
  TANDEM_ASSIGN(settings.slo, ParseSlo(settings.config));
  FillNames(model_name, file, settings.config);
  return settings;
}

}  // namespace tandem::repository
