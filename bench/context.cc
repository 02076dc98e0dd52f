#include "bench/context.h"

#include <exception>

#include "api/base/format.h"
#include "bench/training/network_job.h"
#include "bench/training_side.h"
#include "tests/fakes/onnx_writer.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kServerPatience = 60s;

// A repository with nothing but the model in it.
fs::path RepositoryOf(const BenchContext& context, const std::string& model) {
  return context.work / ("repository-" + ModelName(model));
}

Result<fs::path> SourceOf(const BenchContext& context, const std::string& model) {
  if (model == "resnet50") {
    TANDEM_ASSIGN(const fs::path folder, SetupFolder(context, model));
    return folder / kModelFile;
  }
  const bool shipped = model == "squeezenet" || model == "shufflenet";
  fs::path source = context.folder / model;
  if (shipped) source = context.test_models / Format("light_{}.onnx", model);
  if (fs::is_regular_file(source)) return source;
  const char* const advice = shipped ? "it comes with Debian's libonnx-testdata" : "is the path right?";
  return Fail(ErrorCode::kNotFound, "the model '{}' is not there; {}", source.string(), advice);
}

}  // namespace

Status BenchContext::CheckStop() const {
  if (Stopped()) return Fail(ErrorCode::kCancelled, "interrupted");
  return {};
}

std::string ModelName(const std::string& model) {
  return fs::path(model).stem().string();
}

Result<fs::path> ModelFile(const BenchContext& context, const std::string& model) {
  fs::path file = RepositoryOf(context, model) / ModelName(model) / "1" / "model.onnx";
  try {
    if (fs::exists(file)) return file;
    if (model == "tiny") {
      fakes::MlpModel().WriteTo(file);
      return file;
    }
    TANDEM_ASSIGN(const fs::path source, SourceOf(context, model));
    fs::create_directories(file.parent_path());
    fs::copy_file(source, file);
    return file;
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "the model '{}' cannot be written: {}", model, e.what());
  }
}

Result<std::unique_ptr<ServerProcess>> StartServer(const BenchContext& context, const std::string& model,
                                                   std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--threads", std::to_string(context.threads)});
  return StartServerIn(context, model, {}, std::move(flags));
}

Result<std::unique_ptr<ServerProcess>> StartServerIn(const BenchContext& context, const std::string& model,
                                                     std::vector<fs::path> groups, std::vector<std::string> flags) {
  fs::path repository = context.work / "empty";
  if (model.empty()) {
    std::error_code error;
    fs::create_directories(repository, error);
    if (error) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", repository.string(), error.message());
  } else {
    TANDEM_TRY(ModelFile(context, model));
    repository = RepositoryOf(context, model);
  }
  return ServerProcess::Start(
      {.program = context.program, .repository = repository, .flags = std::move(flags), .groups = std::move(groups)},
      kServerPatience);
}

}  // namespace tandem::bench
