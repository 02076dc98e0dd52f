#include "server/repository/model_loader.h"

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <sstream>
#include <utility>

#include <google/protobuf/util/message_differencer.h>

#include "api/base/format.h"
#include "api/wire/proto/model_config.pb.h"
#include "server/repository/cancel_after.h"
#include "server/repository/config_check.h"
#include "server/repository/config_file.h"
#include "server/repository/model_name.h"
#include "server/repository/model_settings.h"
#include "server/repository/reshaped_session.h"
#include "server/repository/run_archive.h"
#include "server/repository/version_policy.h"

namespace tandem::repository {
namespace {

using inference::ModelConfig;

constexpr std::size_t kMaxLabelBytes = std::size_t{16} << 20;

// Runs a step of a load and turns whatever it throws into an error.
template <typename Step>
auto Guarded(Step step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "not enough memory to load it");
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "{}", Quotable(e.what(), 300));
  } catch (...) {
    return Fail(ErrorCode::kInternal, "the runtime threw something that is not an exception");
  }
}

Result<Servable::Labels> ReadLabels(const ModelFolder& model, const ModelConfig& config) {
  Servable::Labels labels;
  for (const inference::ModelOutput& output : config.output()) {
    if (output.label_filename().empty()) continue;
    TANDEM_ASSIGN(const auto path, ConfinedFile(model, model.folder, output.label_filename(), "label_filename"));
    TANDEM_ASSIGN(const std::string text, ReadSmallFile(path, kMaxLabelBytes));
    std::istringstream lines(text);
    std::vector<std::string>& list = labels[output.name()];
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      list.push_back(std::move(line));
    }
  }
  return labels;
}

// Sets the file to load and where its data may lie: in the model's folder. A file that is a link to elsewhere in the
// repository is loaded from there, and has its data beside itself.
void Locate(const ModelFolder& model, const std::filesystem::path& file, SessionRequest& request) {
  request.file = file;
  request.allowed_root = model.folder;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(file, error);
  if (error) return;
  const std::filesystem::path from_folder = real.lexically_relative(model.folder);
  if (!from_folder.empty() && *from_folder.begin() != "..") return;
  request.file = real;
  request.allowed_root = real.parent_path();
}

bool RunsOnCpu(const SessionRequest& request) {
  return request.format == ModelFormat::kOnnx && request.device != DeviceKind::kGpu &&
         std::ranges::all_of(request.providers, [](const ProviderChoice& choice) { return choice.name == "cpu"; });
}

// Of all that what a version's runs take depends on, but for the machine and the runtime.
std::uint64_t FingerprintOf(const std::vector<FileStamp>& files, const SessionRequest& request,
                            const BatchSettings& batching) {
  std::string text = Format("batched {} device {} {} level {}\n", batching.max_batch_size > 0,
                            static_cast<int>(request.device), request.gpu, request.graph_level.value_or(99));
  for (const ProviderChoice& provider : request.providers) {
    text += Format("provider {}\n", provider.name);
    for (const auto& [name, value] : provider.options) text += Format("option {} {}\n", name, value);
  }
  for (const std::string& output : request.outputs) text += Format("output {}\n", output);
  for (const FileStamp& file : files) text += Format("file {} {} {}\n", file.path, file.size, file.modified_ns);
  return HashText(text);
}

// What goes with a version, and when its sessions have gone.
struct Kept {
  std::shared_ptr<TemporaryFolder> folder;  // Shared with the other versions that came with it.
  std::shared_ptr<void> memory;             // As whoever counts it wants it.
};

// A servable whose last owner hands it to `graves` instead of destroying it. `keep` stays as long as it does.
// What its sessions leave is given back by `factory`, which outlives them.
std::shared_ptr<Servable> MakeServable(std::unique_ptr<Servable> servable, const std::shared_ptr<Worker>& graves,
                                       Kept keep, SessionFactory& factory) {
  // Captured by name it would be const, and could not be moved out.
  return {
      servable.release(), [graves, keep = std::move(keep), &factory](Servable* last) mutable {
        // A weak pointer keeps this closure: it must not hold the folder longer than the servable lives. The
        // folder goes last.
        std::unique_ptr<Servable> owner(last);
        try {
          // Once the worker has stopped, or without memory for the task, it is destroyed here.
          static_cast<void>(graves->PostFirst([keep = std::move(keep), owner = std::move(owner), &factory]() mutable {
            owner.reset();
            factory.ReturnMemory();
          }));
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        }
      }};
}

}  // namespace

bool VersionSource::Same(const VersionSource& other) const {
  return folder == other.folder && files == other.files && shared_files == other.shared_files &&
         google::protobuf::util::MessageDifferencer::Equals(*given, *other.given);
}

Result<LoadPlan> ModelLoader::Plan(ModelFolder folder, const std::optional<std::string>& config_json,
                                   std::shared_ptr<TemporaryFolder> keep) const {
  return Guarded([&] { return PlanUnguarded(std::move(folder), config_json, std::move(keep)); });
}

Result<LoadPlan> ModelLoader::PlanUnguarded(ModelFolder folder, const std::optional<std::string>& config_json,
                                            std::shared_ptr<TemporaryFolder> keep) const {
  ParsedModelConfig given;
  if (config_json) {
    TANDEM_ASSIGN(given, ParseModelConfigJson(*config_json));
  } else if (!folder.config_file.empty()) {
    TANDEM_ASSIGN(given, ReadConfigFile(folder.config_file));
  }
  for (const std::string& warning : given.warnings) {
    Log(LogLevel::kWarning, Format("model '{}': {}", folder.name, warning));
  }
  TANDEM_TRY(CheckConfig(folder.name, given.config));
  if (config_json) TANDEM_TRY(CheckSentConfig(given.config));
  TANDEM_ASSIGN(std::vector<std::int64_t> versions,
                ChooseVersions(given.config.version_policy(), folder.VersionNumbers()));
  return LoadPlan{std::move(folder), std::make_shared<const ModelConfig>(std::move(given.config)), std::move(versions),
                  std::move(keep)};
}

Result<LoadedVersion> ModelLoader::Load(const LoadPlan& plan, std::int64_t version, const LoadedVersion* previous,
                                        CancelToken& hurry) const {
  return Guarded([&] { return LoadUnguarded(plan, version, previous, hurry); });
}

Result<LoadedVersion> ModelLoader::LoadUnguarded(const LoadPlan& plan, std::int64_t version,
                                                 const LoadedVersion* previous, CancelToken& hurry) const {
  const ModelFolder& folder = plan.folder;
  // Which versions are served does not change what one of them is.
  auto given = std::make_shared<ModelConfig>(*plan.given);
  given->clear_version_policy();
  auto source =
      std::make_shared<const VersionSource>(given, folder.folder, folder.shared_files, folder.versions.at(version));
  if (previous != nullptr && previous->source->Same(*source)) {
    LoadedVersion same = *previous;
    auto config = std::make_shared<ModelConfig>(*previous->config);
    *config->mutable_version_policy() = CompletePolicy(*plan.given);
    same.config = std::move(config);
    return same;
  }

  TANDEM_ASSIGN(const ModelFile file, FindModelFile(folder, version, plan.given->default_model_filename()));
  TANDEM_TRY(CheckFormat(*plan.given, file));
  TANDEM_ASSIGN(SessionRequest request, DescribeSession(*plan.given, options_.default_providers));
  request.model = folder.name;
  request.version = version;
  request.format = file.format;
  Locate(folder, file.path, request);
  const HeapGrowth::Look heap(heap_);
  const std::shared_ptr<TemporaryFolder> scratch = MakeScratch();
  if (scratch != nullptr) request.scratch = scratch->path();
  if (options_.count_memory) request.run_bytes = std::make_shared<RunBytes>();
  TANDEM_ASSIGN(std::unique_ptr<InferenceSession> session, factory_.Create(request));
  auto graph = std::make_shared<const ModelSignature>(session->signature());
  TANDEM_ASSIGN(ModelSettings settings, CompleteSettings(folder.name, *plan.given, session->signature(), file));
  NoteOrigin(factory_.Metadata(request), settings.config);
  TANDEM_ASSIGN(Servable::Labels labels, ReadLabels(folder, settings.config));
  session = ApplyReshape(settings.config, settings.signature, std::move(session));
  TANDEM_ASSIGN(const WarmTimes times, WarmUp(plan, settings, *session, hurry));
  Result<NarrowSession> narrow = LoadNarrow(plan, *source, request, settings, hurry);
  request.scratch.clear();
  const std::uint64_t fingerprint = FingerprintOf(source->files, request, settings.batching);

  const std::uint64_t copies = narrow && !narrow->shared ? 2 : 1;
  Kept keep{.folder = plan.keep, .memory = CountMemory(request, *source, settings, copies, heap.Taken())};
  const std::shared_ptr<Servable> servable = MakeServable(
      std::make_unique<Servable>(folder.name, version, std::move(settings.signature), std::move(settings.batching),
                                 settings.slo, std::move(session), std::move(labels)),
      graves_, std::move(keep), factory_);
  if (options_.runs != nullptr) options_.runs->Adopt(servable, fingerprint);
  if (options_.bits != nullptr) servable->SetModelBit(options_.bits->BitOf(folder.name));
  Teach(*servable, RunWidth::kAll, times);
  if (narrow) {
    servable->AddNarrow(std::move(narrow->session), options_.threads);
    Teach(*servable, RunWidth::kOne, narrow->times);
  } else if (narrow.error().code != ErrorCode::kUnsupported) {
    Log(LogLevel::kInfo,
        Format("model '{}' version {} is run on all threads only: {}", folder.name, version, narrow.error().message));
  }
  return LoadedVersion{servable, std::make_shared<const ModelConfig>(std::move(settings.config)), std::move(source),
                       std::move(graph), std::make_shared<const SessionRequest>(std::move(request))};
}

std::shared_ptr<TemporaryFolder> ModelLoader::MakeScratch() const {
  if (options_.weights_folder.empty()) return nullptr;
  auto folder = TemporaryFolder::Create(options_.weights_folder);
  if (folder) return *std::move(folder);
  Log(LogLevel::kInfo, Format("sessions have weights of their own: {}", folder.error().message));
  return nullptr;
}

std::shared_ptr<void> ModelLoader::CountMemory(const SessionRequest& request, const VersionSource& source,
                                               const ModelSettings& settings, std::uint64_t sessions,
                                               std::optional<std::uint64_t> measured) const {
  if (!options_.count_memory) return nullptr;
  std::uint64_t weights = 0;
  if (const auto extent = factory_.Extent(request)) {
    weights = extent->tensor_bytes;
  } else {
    for (const FileStamp& file : source.files) weights += file.size;
  }
  return options_.count_memory({.model = request.model,
                                .version = request.version,
                                .weights = weights * sessions,
                                .measured = measured,
                                .run = GuessRunBytes(settings.signature, settings.batching),
                                .largest_input = LargestInputBytes(settings.signature, settings.batching),
                                .runs = request.run_bytes});
}

Result<ModelSignature> ModelLoader::ReadSignature(const std::string& model, const ModelConfig& given,
                                                  const std::filesystem::path& file) const {
  return Guarded([&]() -> Result<ModelSignature> {
    TANDEM_ASSIGN(SessionRequest request, DescribeSession(given, options_.default_providers));
    request.model = model;
    request.file = file;
    request.allowed_root = file.parent_path();
    TANDEM_ASSIGN(const std::unique_ptr<InferenceSession> session, factory_.Create(request));
    return session->signature();
  });
}

Result<ProfiledVersion> ModelLoader::OpenProfiled(const LoadedVersion& loaded, const std::filesystem::path& temporary,
                                                  const ProfileCheck& check) const {
  return Guarded([&]() -> Result<ProfiledVersion> {
    const Servable& served = *loaded.servable;
    TANDEM_ASSIGN(const ModelFolder folder, FolderOf(served.name(), served.version(), *loaded.source));
    ProfiledVersion profiled{.served = loaded.servable};
    TANDEM_ASSIGN(profiled.extent, factory_.Extent(*loaded.request));
    ModelSettings settings{.config = *loaded.config, .signature = served.signature(), .batching = served.batching()};
    auto* const warmup = settings.config.mutable_model_warmup();
    if (warmup->size() > 1) warmup->DeleteSubrange(1, warmup->size() - 1);
    TANDEM_ASSIGN(std::vector<WarmupSample> samples, BuildWarmup(folder, settings));
    if (!samples.empty()) profiled.sample = std::move(samples.front());
    TANDEM_TRY(check(profiled));
    TANDEM_ASSIGN(profiled.folder, TemporaryFolder::Create(temporary));
    SessionRequest request = *loaded.request;
    request.profile = profiled.folder->path() / "profile";
    TANDEM_ASSIGN(profiled.session, factory_.Create(request));
    profiled.session = ApplyReshape(*loaded.config, served.signature(), std::move(profiled.session));
    return profiled;
  });
}

Result<ModelFolder> ModelLoader::FolderOf(const std::string& model, std::int64_t version,
                                          const VersionSource& source) const {
  // What came with a load call lies in a folder of its own, which nobody else changes.
  ModelFolder folder{.name = model, .root = source.folder, .folder = source.folder};
  auto now = FindModelFolder(options_.roots, model);
  if (!now || now->folder != folder.folder) return folder;
  const auto files = now->versions.find(version);
  if (files == now->versions.end() || files->second != source.files) {
    return Fail(ErrorCode::kConflict, "model '{}' version {} has changed on disk since it was loaded", model, version);
  }
  return *std::move(now);
}

Result<ModelLoader::NarrowSession> ModelLoader::LoadNarrow(const LoadPlan& plan, const VersionSource& source,
                                                           SessionRequest request, const ModelSettings& settings,
                                                           CancelToken& hurry) const {
  if (options_.threads <= 1 || !RunsOnCpu(request)) return Fail(ErrorCode::kUnsupported, "not on the CPU");
  request.one_thread = true;
  NarrowSession narrow;
  TANDEM_ASSIGN(narrow.session, Guarded([&] { return factory_.Create(request); }));
  // Both sessions must be of the same files.
  TANDEM_TRY(FolderOf(request.model, request.version, source));
  narrow.shared = narrow.session->shares_weights();
  narrow.session = ApplyReshape(settings.config, settings.signature, std::move(narrow.session));
  TANDEM_ASSIGN(narrow.times, WarmUp(plan, settings, *narrow.session, hurry));
  return narrow;
}

void ModelLoader::Teach(const Servable& servable, RunWidth width, const WarmTimes& times) {
  LatencyModel& latency = servable.latency(width);
  LatencyModel& alone = servable.alone(width);
  // The shortest of each size: what interrupts a run is no part of it.
  std::map<std::int64_t, std::chrono::nanoseconds> samples;
  for (const WarmRun& run : times.samples) {
    const auto size = samples.try_emplace(run.elements, run.took).first;
    size->second = std::min(size->second, run.took);
  }
  for (const auto& [elements, took] : samples) {
    // What requests have taught is worth more.
    const auto known = latency.Predict(elements);
    if (known && !known->guessed()) continue;
    latency.Observe(elements, took, kBeforehand);
    alone.Observe(elements, took, kBeforehand);
  }
  if (times.zeros.empty()) return;
  const WarmRun& shortest = std::ranges::min(times.zeros, {}, &WarmRun::took);
  latency.Suppose(shortest.elements, shortest.took);
  alone.Suppose(shortest.elements, shortest.took);
}

Result<ModelLoader::WarmTimes> ModelLoader::WarmUp(const LoadPlan& plan, const ModelSettings& settings,
                                                   InferenceSession& session, CancelToken& hurry) const {
  WarmTimes times;
  TANDEM_ASSIGN(const std::vector<WarmupSample> samples, BuildWarmup(plan.folder, settings));
  CancelToken enough;
  const auto registration = hurry.OnCancel([&enough] { enough.Cancel(); });
  if (hurry.cancelled()) return times;
  if (!samples.empty()) {
    const CancelAfter limit(enough, options_.warmup_limit);
    for (const WarmupSample& sample : samples) {
      const Status warm = RunWarmup(session, settings, sample, *options_.clock, enough, times.samples);
      if (hurry.cancelled()) return times;
      if (!warm && limit.expired()) {
        return Invalid("model_warmup '{}' takes longer than the {} that all samples together may take",
                       Quotable(sample.name), std::chrono::duration_cast<std::chrono::seconds>(options_.warmup_limit));
      }
      TANDEM_TRY(warm);
    }
    return times;
  }
  // Zeros are our guess, not the user's word: a graph that dislikes them is still good.
  const auto zeros = options_.default_warmup ? DefaultWarmup(settings) : std::nullopt;
  if (!zeros) return times;
  const CancelAfter limit(enough, options_.default_warmup_limit);
  const Status warm = RunWarmup(session, settings, *zeros, *options_.clock, enough, times.zeros);
  if (warm || hurry.cancelled()) return times;
  if (limit.expired()) {
    Log(LogLevel::kWarning, Format("model '{}' starts cold, its run over zeros takes longer than {}", plan.folder.name,
                                   options_.default_warmup_limit));
  } else {
    Log(LogLevel::kInfo,
        Format("model '{}' starts cold, its run over zeros did not work: {}", plan.folder.name, warm.error().message));
  }
  return times;
}

void ModelLoader::Log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

}  // namespace tandem::repository
