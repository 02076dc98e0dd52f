// The kind "training_depth".

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <json/value.h>
#include <unistd.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "bench/training/network_job.h"
#include "bench/training/networks.h"
#include "bench/training_kinds.h"
#include "bench/training_side.h"
#include "profiler/control_groups.h"
#include "server/jobs/memory_group.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 2000;
constexpr int kMostMegabytes = 1 << 20;
constexpr int kMostBatch = 1024;
constexpr int kMostSteps = 100;
constexpr double kMostSlowdown = 0.25;  // What "deeper" may cost.

struct Depth {
  std::vector<int> layers;  // Growing.
  int batch = 1;
  int steps = 1;
  std::uint64_t bound = 0;  // Bytes.
};

enum class Way { kHeld, kFitted };

class TrainingDepth final : public Measurement {
 public:
  explicit TrainingDepth(Depth depth) : depth_(std::move(depth)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"deeper", "deepest", "held", "fitted", "any", "slowdown", "predicted", "plan"};
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  // Of a network of so many layers; nullopt when it did not train within the bound, which holds for whatever is fitted.
  // Without a bound everything is held.
  [[nodiscard]] Result<std::optional<Json::Value>> Train(const BenchContext& context, int layers, Way way,
                                                         bool bounded) const;
  const Depth depth_;
};

// The group of the memory controller that this process is in.
Result<fs::path> OwnGroup() {
  for (const ControlGroup& group : ControlGroups("memory")) {
    if (jobs::MemoryGroup::Check(group.folder)) return group.folder;
  }
  return Fail(ErrorCode::kUnavailable, "no control group for memory can be made here");
}

Result<std::optional<Json::Value>> TrainingDepth::Train(const BenchContext& context, int layers, Way way,
                                                        bool bounded) const {
  TANDEM_TRY(context.CheckStop());
  const std::string network = Format("{}{}", kDeepResNet, layers);
  TANDEM_ASSIGN(const Network found, FindNetwork(network));
  TANDEM_ASSIGN(const fs::path setup, SetupFolder(context, network));
  const fs::path folder = context.work / "deep";
  std::error_code ec;
  fs::remove_all(folder, ec);
  fs::create_directories(folder, ec);
  if (ec) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", folder.string(), ec.message());
  context.say(Format("{} layers, {}{}", layers, way == Way::kFitted ? "fitted" : "everything held",
                     bounded ? "" : ", without a bound"));
  std::unique_ptr<jobs::MemoryGroup> group;
  ChildCommand command{
      .words = {context.bench.parent_path() / "tandem-bench-training", "deep", setup / kModelFile, folder,
                std::to_string(found.classes), std::to_string(depth_.batch), std::to_string(context.threads),
                std::to_string(depth_.steps), std::to_string(way == Way::kFitted ? depth_.bound >> 20 : 0)},
      .environment = {},
      .log = context.work / "training-depth.log"};
  if (bounded) {
    TANDEM_ASSIGN(const fs::path parent, OwnGroup());
    const std::string name = Format("tandem-bench-depth-{}", ::getpid());
    TANDEM_ASSIGN(group, jobs::MemoryGroup::Make(parent, name, depth_.bound));
    command.groups.push_back(parent / name / "cgroup.procs");
  }
  TANDEM_ASSIGN(const auto process, ChildProcess::Start(command));
  if (const Status end = process->WaitForEnd([&] { return context.Stopped(); }); !end) {
    if (end.error().code == ErrorCode::kCancelled || !bounded) return std::unexpected(end.error());
    return std::nullopt;  // Killed, or told that it does not fit.
  }
  TANDEM_ASSIGN(const Json::Value told, ParseStrictJson(process->LastLine()));
  return std::optional(told);
}

Result<SeriesMap> TrainingDepth::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  SeriesMap series;
  if (const auto group = OwnGroup(); !group) {
    for (const std::string& name : this->series()) series[name].not_run = group.error().message;
    return series;
  }
  int held = 0;
  int fitted = 0;  // Within the slowdown.
  int any = 0;     // At whatever slowdown.
  for (const int layers : depth_.layers) {
    TANDEM_ASSIGN(const auto in_bound, Train(context, layers, Way::kHeld, true));
    if (!in_bound) break;
    held = layers;
  }
  if (held == 0) {
    return Invalid("even {} layers do not train within {} bytes", depth_.layers.front(), depth_.bound);
  }
  double slowdown = 0;
  double predicted = 0;
  for (const int layers : depth_.layers) {
    if (layers <= held) continue;
    TANDEM_ASSIGN(const auto in_bound, Train(context, layers, Way::kFitted, true));
    if (!in_bound) break;
    any = layers;
    TANDEM_ASSIGN(const auto free, Train(context, layers, Way::kHeld, false));
    const double slower = (*in_bound)["step"].asDouble() / (*free)["step"].asDouble() - 1;
    context.say(Format("{} layers: a step takes {:.1f} % longer, {:.1f} % was told", layers, 100 * slower,
                       100 * (*in_bound)["slowdown"].asDouble()));
    if (slower > kMostSlowdown) continue;
    fitted = layers;
    slowdown = slower;
    predicted = (*in_bound)["slowdown"].asDouble();
    series["plan"].samples.push_back((*in_bound)["plan"].asDouble());
  }
  series["held"].samples.push_back(held);
  series["fitted"].samples.push_back(std::max(fitted, held));
  series["any"].samples.push_back(std::max(any, held));
  series["deeper"].samples.push_back(static_cast<double>(std::max(fitted, held)) / held);
  series["deepest"].samples.push_back(static_cast<double>(std::max(any, held)) / held);
  series["slowdown"].samples.push_back(slowdown);
  series["predicted"].samples.push_back(predicted);
  if (series["plan"].samples.empty()) series["plan"].not_run = "nothing deeper was fitted";
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseTrainingDepth(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  Depth depth;
  TANDEM_ASSIGN(const int first, fields.Whole("first", 8, kMostLayers));
  TANDEM_ASSIGN(const int last, fields.Whole("last", first, kMostLayers));
  TANDEM_ASSIGN(const int apart, fields.Whole("apart", 1, kMostLayers));
  for (const int layers : {first, apart + 2}) {
    if ((layers - 2) % kLayersOfBlocks != 0) {
      return Invalid("{}: networks have six layers to a set of blocks, and two more; from {}, {} apart is not that",
                     fields.At("first"), first, apart);
    }
  }
  for (int layers = first; layers <= last; layers += apart) depth.layers.push_back(layers);
  TANDEM_ASSIGN(depth.batch, fields.Whole("batch", 1, kMostBatch));
  TANDEM_ASSIGN(depth.steps, fields.Whole("steps", 3, kMostSteps));
  TANDEM_ASSIGN(const int megabytes, fields.Whole("memory_mib", 64, kMostMegabytes));
  depth.bound = static_cast<std::uint64_t>(megabytes) << 20;
  return std::make_unique<TrainingDepth>(std::move(depth));
}

}  // namespace tandem::bench
