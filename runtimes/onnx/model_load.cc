#include "runtimes/onnx/model_load.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "api/base/format.h"
#include "runtimes/onnx/external_data.h"
#include "runtimes/onnx/integer_division.h"
#include "runtimes/onnx/process_memory.h"
#include "runtimes/onnx/providers.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Larger weights are not kept a second time for runs on one thread.
constexpr std::uint64_t kMostSecondWeights = std::uint64_t{512} << 20;

GraphOptimizationLevel LevelOf(GraphOptimization level) {
  switch (level) {
    case GraphOptimization::kNone: return ORT_DISABLE_ALL;
    case GraphOptimization::kBasic: return ORT_ENABLE_BASIC;
    case GraphOptimization::kExtended: return ORT_ENABLE_EXTENDED;
    case GraphOptimization::kAll: return ORT_ENABLE_ALL;
  }
  return ORT_ENABLE_ALL;
}

// A pool of its own; of one thread there is none, as the thread that runs the session counts.
Status AddOwnThreads(const OrtEnvironment& environment, int threads, OrtSessionOptions* options) {
  const OrtApi& api = environment.api();
  TANDEM_TRY(CheckOrt(api, api.SetIntraOpNumThreads(options, threads), "thread count"));
  TANDEM_TRY(CheckOrt(api, api.SetInterOpNumThreads(options, 1), "thread count"));
  const char* const spins = environment.spins() ? "1" : "0";
  return CheckOrt(api, api.AddSessionConfigEntry(options, "session.intra_op.allow_spinning", spins), "session options");
}

Status AddThreads(const OrtEnvironment& environment, const SessionSpec& spec, OrtSessionOptions* options) {
  const OrtApi& api = environment.api();
  if (spec.one_thread) return AddOwnThreads(environment, 1, options);
  if (spec.profile.empty()) return CheckOrt(api, api.DisablePerSessionThreads(options), "session options");
  // As many as the shared pool has: while one session is profiled its pool takes notes, too, and those of others that
  // run on it at that moment do not add up, which ONNX Runtime fails them for.
  TANDEM_TRY(AddOwnThreads(environment, environment.intra_op_threads(), options));
  return CheckOrt(api, api.EnableProfiling(options, spec.profile.c_str()), "session options");
}

Status AddEntries(const OrtApi& api, std::initializer_list<std::pair<const char*, const char*>> entries,
                  OrtSessionOptions* options) {
  for (const auto& [key, value] : entries) {
    TANDEM_TRY(CheckOrt(api, api.AddSessionConfigEntry(options, key, value), "session options"));
  }
  return {};
}

Result<OrtPtr<OrtSessionOptions>> MakeOptions(const OrtEnvironment& environment, const SessionSpec& spec,
                                              const OnnxFileInfo& file) {
  const OrtApi& api = environment.api();
  OrtSessionOptions* raw = nullptr;
  TANDEM_TRY(CheckOrt(api, api.CreateSessionOptions(&raw), "session options"));
  OrtPtr<OrtSessionOptions> options(raw, {api.ReleaseSessionOptions});
  TANDEM_TRY(AddThreads(environment, spec, raw));
  TANDEM_TRY(CheckOrt(api, api.SetSessionLogId(raw, spec.name.c_str()), "session options"));
  TANDEM_TRY(CheckOrt(api, api.SetSessionGraphOptimizationLevel(raw, LevelOf(spec.optimization)), "session options"));
  TANDEM_TRY(AddEntries(api,
                        {{"session.use_env_allocators", "1"},
                         // Weights stay out of the lanes of runs.
                         {"session.use_device_allocator_for_initializers", "1"},
                         {"session.load_model_format", "ONNX"}},
                        raw));
  // ONNX Runtime keeps a memory plan for every combination of input shapes that it ever saw: clients could fill memory.
  if (file.variable_inputs) TANDEM_TRY(CheckOrt(api, api.DisableMemPattern(raw), "session options"));
  TANDEM_TRY(AppendProviders(environment.library(), spec, raw));
  return options;
}

// What tells that a file is still the one that was looked at.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

FileIdentity IdentityOf(const std::filesystem::path& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return {};
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; };
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

// A model file and what was found out about it.
struct CheckedFile {
  fs::path folder;
  FileIdentity identity;
  OnnxFileInfo info;
};

Result<CheckedFile> CheckFile(const SessionSpec& spec) {
  const fs::path parent = spec.model.parent_path();
  CheckedFile file{.folder = parent.empty() ? fs::path(".") : parent};
  TANDEM_TRY(ConfineModel(spec.model, spec.root));
  file.identity = IdentityOf(spec.model);
  TANDEM_ASSIGN(file.info, InspectOnnxFile(spec.model));
  TANDEM_TRY(CheckExternalData(file.folder, file.info.external));
  if (const std::uint64_t memory = UsableMemory(); file.info.tensor_bytes > memory) {
    return Fail(ErrorCode::kTooLarge, "its weights need {} bytes, this process may have {}", file.info.tensor_bytes,
                memory);
  }
  return file;
}

// The file that failed, or that loaded, may be another than the one that was checked.
Status CheckUnchanged(const SessionSpec& spec, const CheckedFile& file) {
  if (IdentityOf(spec.model) == file.identity) return {};
  return Fail(ErrorCode::kUnavailable, "'{}' changed while it was loaded; load it again", spec.model.string());
}

struct OwnSession {
  WeightClaim claim;
  ExternalWeights weights;
  OrtPtr<OrtSession> session;
};

// Has ONNX Runtime load the file with these options.
Result<OwnSession> LoadOwn(const OrtEnvironment& environment, const SessionSpec& spec, const CheckedFile& file,
                           OrtSessionOptions* options) {
  if (spec.one_thread && file.info.tensor_bytes > kMostSecondWeights) {
    return Fail(ErrorCode::kTooLarge, "its weights have {} bytes, more than the {} that are kept twice",
                file.info.tensor_bytes, kMostSecondWeights);
  }
  TANDEM_ASSIGN(ExternalWeights weights, ExternalWeights::Add(environment.api(), file.folder, file.info, options));
  TANDEM_ASSIGN(WeightClaim claim,
                environment.ClaimWeights(file.info.tensor_bytes - weights.lent_bytes(), spec.one_thread ? 2 : 1));
  OrtSession* raw = nullptr;
  const IntegerDivisionWatch divisions;  // Shape inference and constant folding compute, too.
  OrtStatus* const status = environment.api().CreateSession(environment.handle(), spec.model.c_str(), options, &raw);
  const auto failure = TakeFailure(environment.api(), status);
  OrtPtr<OrtSession> session(raw, {environment.api().ReleaseSession});
  TANDEM_TRY(CheckUnchanged(spec, file));
  TANDEM_TRY(divisions.Check(spec.name));
  if (failure) return std::unexpected(LoadError(*failure, spec.model.string()));
  weights.ReleaseCopied();
  return OwnSession{std::move(claim), std::move(weights), std::move(session)};
}

// Other providers have layouts of their own, and may compile nodes, which cannot be written.
bool MayShare(const SessionSpec& spec) {
  return !spec.scratch.empty() && std::ranges::all_of(spec.providers, [](const ProviderSpec& provider) {
    return provider.kind == ProviderKind::kCpu;
  });
}

// What decides how a model is rewritten.
std::string KeyOf(const SessionSpec& spec, const CheckedFile& file) {
  std::set<fs::path> paths{spec.model};
  for (const ExternalTensor& tensor : file.info.external) paths.insert(file.folder / tensor.location);
  std::string key = Format("level {}\n", static_cast<int>(spec.optimization));
  for (const fs::path& path : paths) {
    const FileIdentity id = path == spec.model ? file.identity : IdentityOf(path);
    AppendFormat(key, "{} {} {} {} {}\n", id.device, id.inode, id.size, id.modified_ns, id.changed_ns);
  }
  return key;
}

// Has ONNX Runtime rewrite the model once, for all sessions that are made of this file.
Result<std::shared_ptr<const PreparedModel>> Prepare(const OrtEnvironment& environment, const SessionSpec& spec,
                                                     const CheckedFile& file) {
  const OrtApi& api = environment.api();
  const RewrittenFiles files{spec.scratch};
  SessionSpec once = spec;
  once.one_thread = false;
  once.profile.clear();
  TANDEM_ASSIGN(const OrtPtr<OrtSessionOptions> options, MakeOptions(environment, once, file.info));
  OrtSessionOptions* const raw = options.get();
  TANDEM_TRY(CheckOrt(api, api.SetOptimizedModelFilePath(raw, files.graph().c_str()), "session options"));
  TANDEM_TRY(
      AddEntries(api,
                 {{"session.optimized_model_external_initializers_file_name", RewrittenFiles::kWeightsName},
                  {"session.optimized_model_external_initializers_min_size_in_bytes", RewrittenFiles::kLeastExternal},
                  {"session.disable_prepacking", "1"}},
                 raw));
  GraphInputs inputs;
  {
    TANDEM_ASSIGN(const OwnSession writer, LoadOwn(environment, once, file, raw));
    if (writer.weights.lent_bytes() > 0) {
      return Fail(ErrorCode::kUnsupported, "some of its weights are lent from outside");
    }
    TANDEM_ASSIGN(inputs, InputsOf(api, writer.session.get()));
  }
  return PreparedModel::Take(environment, files, std::move(inputs));
}

Result<LoadedModel> LoadShared(const OrtEnvironment& environment, const SessionSpec& spec, const CheckedFile& file) {
  const std::string key = KeyOf(spec, file);
  LoadedModel loaded{.file = file.info};
  loaded.prepared = environment.prepared_models().Find(key);
  if (loaded.prepared == nullptr) {
    TANDEM_ASSIGN(loaded.prepared, Prepare(environment, spec, file));
    loaded.prepared = environment.prepared_models().Keep(key, std::move(loaded.prepared));
  }
  SessionSpec rewritten = spec;
  rewritten.optimization = GraphOptimization::kNone;
  TANDEM_ASSIGN(const OrtPtr<OrtSessionOptions> options, MakeOptions(environment, rewritten, file.info));
  const IntegerDivisionWatch divisions;
  TANDEM_ASSIGN(loaded.session, loaded.prepared->MakeSession(environment.handle(), options.get()));
  TANDEM_TRY(divisions.Check(spec.name));
  return loaded;
}

}  // namespace

Result<LoadedModel> LoadModel(const OrtEnvironment& environment, const SessionSpec& spec) {
  TANDEM_ASSIGN(const CheckedFile file, CheckFile(spec));
  if (MayShare(spec)) {
    auto shared = LoadShared(environment, spec, file);
    if (shared) return shared;
    // Whatever is in the way of sharing is in nobody else's way; what is wrong with the model is found again below.
    environment.Tell(Format("model '{}' does not share its weights: {}", spec.name, shared.error().message));
  }
  TANDEM_ASSIGN(const OrtPtr<OrtSessionOptions> options, MakeOptions(environment, spec, file.info));
  TANDEM_ASSIGN(OwnSession own, LoadOwn(environment, spec, file, options.get()));
  return LoadedModel{.file = file.info,
                     .prepared = nullptr,
                     .claim = std::move(own.claim),
                     .weights = std::move(own.weights),
                     .session = std::move(own.session)};
}

}  // namespace tandem
