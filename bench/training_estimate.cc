// The kind "training_estimate".

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <json/value.h>

#include "api/base/format.h"
#include "api/base/training_memory.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "bench/training/network_job.h"
#include "bench/training/networks.h"
#include "bench/training_kinds.h"
#include "bench/training_side.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBatch = 64;
constexpr int kMostRounds = 100;
constexpr double kHighShare = 0.95;
constexpr int kClassesOfLight = 1000;
constexpr const char* kTransformer = "transformer";
constexpr const char* kParts[] = {"persistent", "ephemeral"};
constexpr const char* kOptimizers[] = {"sgd", "adam"};

// Every network with every optimizer.
struct Cell {
  std::vector<std::string> networks;
  std::vector<std::string> optimizers;
  int batch = 1;
  int rounds = 1;  // Only where a scenario is run with so many.
};

// Of one part of a job's memory, over all jobs.
struct Errors {
  std::vector<double> values;

  void PutInto(SeriesMap& series, const std::string& part) const {
    std::vector<double> sizes;
    for (const double value : values) sizes.push_back(std::abs(value));
    series[part].samples = sizes;
    series[part + ".least"].samples.push_back(std::ranges::min(values));
    std::ranges::sort(sizes);
    const auto rank = static_cast<std::size_t>(std::ceil(kHighShare * static_cast<double>(sizes.size())));
    series[part + ".high"].samples.push_back(sizes[rank - 1]);
  }
};

class TrainingEstimate final : public Measurement {
 public:
  explicit TrainingEstimate(std::vector<Cell> cells) : cells_(std::move(cells)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> names{"seconds"};
    for (const std::string part : kParts) {
      for (const char* what : {"", ".high", ".least"}) names.push_back(part + what);
    }
    return names;
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const std::vector<Cell> cells_;
};

Result<fs::path> FileOf(const BenchContext& context, const std::string& network) {
  if (network == kTransformer) {
    TANDEM_ASSIGN(const fs::path folder, SetupFolder(context, network));
    return folder / kModelFile;
  }
  fs::path file = context.test_models / Format("light_{}.onnx", network);
  if (fs::is_regular_file(file)) return file;
  return Fail(ErrorCode::kNotFound, "the model '{}' is not there; it comes with Debian's libonnx-testdata",
              file.string());
}

// What tandem-bench-training prints of one job.
Result<Json::Value> Compare(const BenchContext& context, const std::string& network, const std::string& optimizer,
                            int batch) {
  TANDEM_ASSIGN(const fs::path file, FileOf(context, network));
  TANDEM_ASSIGN(const Network transformer, FindNetwork(kTransformer));
  const fs::path folder = context.work / "estimated";
  std::error_code ec;
  fs::remove_all(folder, ec);
  fs::create_directories(folder, ec);
  if (ec) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", folder.string(), ec.message());
  const std::int64_t classes = network == kTransformer ? transformer.classes : kClassesOfLight;
  const ChildCommand command{
      .words = {context.bench.parent_path() / "tandem-bench-training", "memory", file, folder, std::to_string(classes),
                std::to_string(batch), std::to_string(context.threads), optimizer},
      .environment = {},
      .log = context.work / "training-memory.log"};
  TANDEM_ASSIGN(const auto process, ChildProcess::Start(command));
  TANDEM_TRY(process->WaitForEnd([&] { return context.Stopped(); }));
  return ParseStrictJson(process->LastLine());
}

Result<SeriesMap> TrainingEstimate::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  SeriesMap series;
  std::map<std::string, Errors> errors;
  for (const Cell& cell : cells_) {
    if (context.pace.rounds < cell.rounds) continue;
    for (const std::string& network : cell.networks) {
      for (const std::string& optimizer : cell.optimizers) {
        TANDEM_TRY(context.CheckStop());
        const std::string job = Format("{}, batch {}, {}", network, cell.batch, optimizer);
        context.say("memory of " + job);
        auto found = Compare(context, network, optimizer, cell.batch);
        if (!found) return Fail(found.error().code, "{}: {}", job, found.error().message);
        for (const std::string part : kParts) {
          const Json::Value& one = (*found)[part];
          errors[part].values.push_back(EstimateError(one["estimate"].asUInt64(), one["measured"].asUInt64()));
        }
        series["seconds"].samples.push_back((*found)["seconds"].asDouble());
      }
    }
  }
  for (const auto& [part, of_jobs] : errors) of_jobs.PutInto(series, part);
  return series;
}

Result<Cell> ParseCell(JsonFields fields) {
  Cell cell;
  TANDEM_ASSIGN(cell.networks, fields.Texts("networks"));
  TANDEM_ASSIGN(cell.optimizers, fields.Texts("optimizers"));
  TANDEM_ASSIGN(cell.batch, fields.Whole("batch", 1, kMostBatch));
  TANDEM_ASSIGN(cell.rounds, fields.WholeOr("rounds", 1, kMostRounds, 1));
  TANDEM_TRY(fields.Finish());
  if (cell.networks.empty()) return Invalid("{}: there is none", fields.At("networks"));
  if (cell.optimizers.empty()) return Invalid("{}: there is none", fields.At("optimizers"));
  for (const std::string& optimizer : cell.optimizers) {
    if (!std::ranges::contains(kOptimizers, optimizer)) {
      return Invalid("{}: must be sgd or adam, not '{}'", fields.At("optimizers"), Excerpt(optimizer));
    }
  }
  return cell;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseTrainingEstimate(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::vector<JsonFields> objects, fields.Objects("cells"));
  std::vector<Cell> cells;
  for (JsonFields& object : objects) {
    TANDEM_ASSIGN(Cell cell, ParseCell(std::move(object)));
    cells.push_back(std::move(cell));
  }
  // A run with few rounds measures something, too.
  if (std::ranges::none_of(cells, [](const Cell& cell) { return cell.rounds == 1; })) {
    return Invalid("{}: there must be one for a single round", fields.At("cells"));
  }
  return std::make_unique<TrainingEstimate>(std::move(cells));
}

}  // namespace tandem::bench
