#include "bench/serving.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "api/base/clock.h"
#include "bench/machine.h"
#include "bench/serving_parts.h"
#include "profiler/machine.h"
#include "tests/fakes/onnx_writer.h"

namespace tandem::bench {
namespace {

Status WriteRepositories(const ServingContext& context, const std::filesystem::path& squeezenet) {
  try {
    if (!std::filesystem::exists(squeezenet)) {
      return Fail(ErrorCode::kNotFound, "'{}' is not there; it comes with Debian's libonnx-testdata",
                  squeezenet.string());
    }
    std::filesystem::create_directories(context.repositories / "empty");
    fakes::MlpModel().WriteTo(context.ModelFile("tiny"));
    const std::filesystem::path file = context.ModelFile("squeezenet");
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::copy_file(squeezenet, file);
    return {};
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "the models of the benchmark cannot be written: {}", e.what());
  }
}

}  // namespace

Result<Report> RunServing(const ServingOptions& options) {
  TANDEM_ASSIGN(const auto folder, TemporaryFolder::Make());
  ServingContext context;
  if (options.quick) context.pace = Pace::Quick();
  context.program = options.program;
  context.repositories = folder->path();
  context.threads = UsableCores();
  context.say = options.say ? options.say : [](std::string_view) {};
  context.stop = options.stop;
  TANDEM_TRY(WriteRepositories(context, options.squeezenet));

  Report report;
  report.scenario = "serving";
  report.date = IsoDate(RealClock::Instance().WallNow());
  report.commit = CommitOf(options.source);
  report.machine = DescribeMachine();

  const auto add = [&](Result<std::vector<Row>> rows) -> Status {
    if (!rows) return std::unexpected(std::move(rows).error());
    std::ranges::move(*rows, std::back_inserter(report.rows));
    return {};
  };
  TANDEM_TRY(add(MeasureStart(context)));
  {
    // Before ONNX Runtime is loaded here: nothing else of ours is running while the server is weighed.
    TANDEM_ASSIGN(const auto server, context.StartServer("tiny"));
    TANDEM_TRY(add(MeasureIdleMemory(context, *server)));
    TANDEM_TRY(add(MeasureIdleConnections(context, *server)));
  }
  TANDEM_ASSIGN(auto library, OrtLibrary::Open(options.ort_library));
  report.machine.onnx_runtime = library->version();
  EnvironmentOptions environment;
  environment.intra_op_threads = context.threads;
  TANDEM_ASSIGN(context.environment, OrtEnvironment::Create(std::move(library), std::move(environment)));
  {
    TANDEM_ASSIGN(const auto server, context.StartServer("tiny"));
    TANDEM_TRY(add(MeasureTinyModel(context, *server)));
  }
  {
    TANDEM_ASSIGN(const auto server, context.StartServer("squeezenet"));
    TANDEM_TRY(add(MeasureSqueezenet(context, *server)));
  }
  return report;
}

}  // namespace tandem::bench
