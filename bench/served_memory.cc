#include "bench/served_memory.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "bench/bare_session.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "bench/load_window.h"
#include "bench/server_process.h"
#include "loadgen/infer_request_bytes.h"
#include "profiler/run_bytes.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/session_factory.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kMostCopies = 100;
constexpr auto kPatience = 600s;
constexpr const char* kOurNetworks[] = {"resnet50", "squeezenet", "transformer"};

struct Model {
  std::string name;
  fs::path file;
};

// Proportional set size: what several processes share is divided among them.
Result<double> ProportionalBytes(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("Pss:")) continue;
    const std::size_t digit = line.find_first_of("0123456789");
    std::uint64_t kilobytes = 0;
    if (digit != std::string::npos) std::from_chars(line.data() + digit, line.data() + line.size(), kilobytes);
    if (kilobytes > 0) return static_cast<double>(kilobytes) * 1024;
  }
  return Fail(ErrorCode::kInternal, "the kernel does not tell the proportional set size of process {}", pid);
}

// What one run of a model takes, as a lane of ours sees it in this process.
Result<double> RunOf(BenchContext& context, const fs::path& file) {
  TANDEM_ASSIGN(auto environment, SharedEnvironment(context));
  const auto runs = std::make_shared<RunBytes>();
  TANDEM_ASSIGN(const auto session,
                CreateSession(std::move(environment),
                              {.name = "measured", .model = file, .root = file.parent_path(), .run_bytes = runs}));
  TANDEM_ASSIGN(const auto inputs, loadgen::RandomInputs(session->signature(), {.seed = 1}));
  std::vector<std::string> outputs;
  for (const TensorSpec& output : session->signature().outputs) outputs.push_back(output.name);
  CancelToken cancel;
  TANDEM_TRY(session->Run(inputs, outputs, cancel));
  return static_cast<double>(runs->Expected());
}

bool IsNamePart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

class ServedMemory final : public Measurement {
 public:
  ServedMemory(std::vector<std::string> networks, int copies) : networks_(std::move(networks)), copies_(copies) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"memory", "memory.empty", "weights", "run", "ratio", "overhead", "load"};
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  [[nodiscard]] Result<std::vector<Model>> WriteModels(const BenchContext& context, const fs::path& repository) const;

  const std::vector<std::string> networks_;
  const int copies_;
};

Result<std::vector<Model>> ServedMemory::WriteModels(const BenchContext& context, const fs::path& repository) const {
  std::vector<Model> models;
  for (const std::string& network : networks_) {
    // Those of bench/training have no light model, or a batch that is free.
    std::string source = network;
    if (!std::ranges::contains(kOurNetworks, network)) {
      source = context.test_models / Format("light_{}.onnx", network);
    }
    for (int copy = 0; copy < copies_; ++copy) {
      TANDEM_TRY(context.CheckStop());
      Model model{.name = Format("{}_{}", network, copy), .file = {}};
      model.file = repository / model.name / "1" / "model.onnx";
      context.say("writing model " + model.name);
      const ChildCommand command{.words = {context.bench.parent_path() / "tandem-bench-training", "model", source,
                                           std::to_string(copy + 1), model.file},
                                 .environment = {},
                                 .log = context.work / "served-models.log"};
      TANDEM_ASSIGN(const auto writer, ChildProcess::Start(command));
      TANDEM_TRY(writer->WaitForEnd([&] { return context.Stopped(); }));
      models.push_back(std::move(model));
    }
  }
  return models;
}

// By how much the median of requests is longer than that of runs in a private session, in seconds.
Result<double> Overhead(BenchContext& context, const Model& model, int port) {
  TANDEM_ASSIGN(auto environment, SharedEnvironment(context));
  TANDEM_ASSIGN(const auto bare,
                BareSession::Load(std::move(environment), model.file, BareThreads::kShared, context.threads));
  TANDEM_ASSIGN(auto inputs, loadgen::RandomInputs(bare->signature(), {.seed = 1}));
  TANDEM_ASSIGN(
      const auto request,
      loadgen::BuildInferRequest(
          {.port = port, .model = model.name, .form = loadgen::InferForm::kBinary, .binary_output = true}, inputs));
  TANDEM_TRY(bare->SetInputs(std::move(inputs)));
  TANDEM_ASSIGN(const auto alone, TimeRuns(*bare, context.pace.warmup, context.pace.window));
  TANDEM_ASSIGN(const auto served, HttpWindow(context.pace, port, request, /*users=*/1));
  return Seconds(served.latency.Percentile(50)) - Seconds(alone.Percentile(50));
}

Result<SeriesMap> ServedMemory::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const fs::path repository = context.work / "served";
  TANDEM_ASSIGN(const std::vector<Model> models, WriteModels(context, repository));
  double weights = 0;
  double run = 0;
  for (const Model& model : models) {
    TANDEM_ASSIGN(const OnnxFileInfo info, InspectOnnxFile(model.file));
    weights += static_cast<double>(info.tensor_bytes);
    TANDEM_ASSIGN(const double taken, RunOf(context, model.file));
    run = std::max(run, taken);
  }
  SeriesMap series;
  {
    TANDEM_ASSIGN(const auto empty, StartServer(context, ""));
    TANDEM_ASSIGN(const double bytes, ProportionalBytes(empty->pid()));
    series["memory.empty"].samples.push_back(bytes);
  }
  context.say(Format("starting a server with {} models", models.size()));
  TANDEM_ASSIGN(const auto server, ServerProcess::Start({.program = context.program,
                                                         .repository = repository,
                                                         .flags = {"--threads", std::to_string(context.threads)},
                                                         .groups = {}},
                                                        kPatience));
  series["load"].samples.push_back(Seconds(server->start_to_ready()));
  for (int round = 0; round < context.pace.rounds; ++round) {
    for (const Model& model : models) {
      TANDEM_TRY(context.CheckStop());
      context.say(Format("served models, round {}: {}", round + 1, model.name));
      TANDEM_ASSIGN(const double overhead, Overhead(context, model, server->http_port()));
      series["overhead"].samples.push_back(overhead);
    }
    TANDEM_ASSIGN(const double memory, ProportionalBytes(server->pid()));
    series["memory"].samples.push_back(memory);
    series["ratio"].samples.push_back(memory / (weights + run));
  }
  series["weights"].samples.push_back(weights);
  series["run"].samples.push_back(run);
  std::error_code ignored;
  fs::remove_all(repository, ignored);
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseServedMemory(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::vector<std::string> networks, fields.Texts("networks"));
  TANDEM_ASSIGN(const int copies, fields.Whole("copies", 1, kMostCopies));
  if (networks.empty()) return Invalid("{}: there is none", fields.At("networks"));
  for (const std::string& network : networks) {
    // It becomes part of a path.
    if (!std::ranges::all_of(network, IsNamePart)) {
      return Invalid("{}: '{}' is not the name of a network", fields.At("networks"), Excerpt(network));
    }
  }
  return std::make_unique<ServedMemory>(std::move(networks), copies);
}

}  // namespace tandem::bench
