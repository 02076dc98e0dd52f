#include "server/cli/simulate_profile.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"

namespace tandem::cli {
namespace {

using simulation::Step;
using std::chrono::nanoseconds;

constexpr std::size_t kMostBytes = 8 << 20;
constexpr Json::ArrayIndex kMostOps = 10'000;
constexpr double kMostRuns = 100'000;  // Of all operators, in an iteration.
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;
constexpr double kMostMs = 1e6;
constexpr const char* kOncePerIteration = "loss";

// What the profile tells of one operator.
struct RecordedOp {
  std::string kind;
  std::int64_t count = 0;
  double total_ms = 0;
  double typical_ms = 0;
  bool heavy = false;
};

RecordedOp ReadOp(const Json::Value& json, const std::string& pointer, std::vector<JsonMistake>& mistakes) {
  RecordedOp op;
  JsonFields fields(json, pointer, mistakes);
  for (const char* name : {"kind", "count", "total_ms", "typical_ms", "class"}) {
    if (!json.isMember(name)) fields.Missing(name, "tandem profile JOB --json writes it of every operator");
  }
  fields.Text("kind", op.kind);
  fields.Whole("count", op.count, 0, kMostCount);
  fields.Number("total_ms", op.total_ms, 0, kMostMs * 1e6);
  fields.Number("typical_ms", op.typical_ms, 0, kMostMs);
  constexpr std::pair<std::string_view, bool> kClasses[] = {{"light", false}, {"heavy", true}};
  fields.Choice("class", op.heavy, kClasses);
  return op;
}

std::vector<RecordedOp> ReadOps(const Json::Value& profile, std::vector<JsonMistake>& mistakes) {
  std::vector<RecordedOp> ops;
  JsonFields fields(profile, "", mistakes);
  const Json::Value* const list = fields.Find("ops");
  if (list == nullptr) {
    fields.Missing("ops", "it is no profile that tandem profile JOB --json wrote");
    return ops;
  }
  if (!list->isArray() || list->empty() || list->size() > kMostOps) {
    fields.Mistake("/ops", *list, Format("a list of 1 to {} objects", kMostOps));
    return ops;
  }
  for (Json::ArrayIndex i = 0; i < list->size(); ++i) {
    const std::string pointer = Format("/ops/{}", i);
    if ((*list)[i].isObject()) {
      ops.push_back(ReadOp((*list)[i], pointer, mistakes));
    } else {
      fields.Mistake(pointer, (*list)[i], "an object");
    }
  }
  return ops;
}

// So many of each as there are, spread over one another as evenly as can be.
std::vector<Step> TakingTurns(const std::vector<Step>& heavy, const std::vector<Step>& light) {
  std::vector<Step> all;
  all.reserve(heavy.size() + light.size());
  std::size_t taken = 0;
  for (std::size_t i = 0; i < light.size(); ++i) {
    for (; taken * light.size() < heavy.size() * (i + 1); ++taken) all.push_back(heavy[taken]);
    all.push_back(light[i]);
  }
  all.insert(all.end(), heavy.begin() + static_cast<std::ptrdiff_t>(taken), heavy.end());
  return all;
}

bool IsBelow(const std::filesystem::path& folder, const std::filesystem::path& file) {
  return std::ranges::mismatch(folder, file).in1 == folder.end();
}

// The file itself, links followed; else what is wrong with it.
Result<std::filesystem::path> FileBelow(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path named = std::filesystem::path(name).lexically_normal();
  const bool outside = named.is_absolute() || *named.begin() == "..";
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder.empty() ? "." : folder, error);
  const auto file = outside || error ? named : std::filesystem::canonical(root / named, error);
  if (outside || (!error && !IsBelow(root, file))) return Invalid("it is not below the folder of the scenario");
  if (!error && std::filesystem::is_regular_file(file, error)) return file;
  return Invalid("it cannot be read: {}", error ? error.message() : "it is no file");
}

}  // namespace

std::vector<Step> RecordedIteration(const Json::Value& profile, double cores, std::vector<JsonMistake>& mistakes) {
  const std::size_t before = mistakes.size();
  const std::vector<RecordedOp> ops = ReadOps(profile, mistakes);
  if (mistakes.size() > before) return {};
  double iterations = 0;
  for (const RecordedOp& op : ops) {
    if (op.kind == kOncePerIteration) iterations += static_cast<double>(op.count);
  }
  if (iterations == 0) {
    mistakes.push_back({"/ops", "/ops has no operator of the kind 'loss' that has run: iterations cannot be counted"});
    return {};
  }
  std::vector<Step> heavy;
  std::vector<Step> light;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const RecordedOp& op = ops[i];
    if (op.count == 0) continue;
    const double each = static_cast<double>(op.count) / iterations;
    const double runs = std::max(1.0, std::round(each));
    if (runs + static_cast<double>(heavy.size() + light.size()) > kMostRuns) {
      mistakes.push_back({Format("/ops/{}/count", i), Format("/ops/{}/count is {}: with {} iterations an iteration "
                                                             "has more than {} steps",
                                                             i, op.count, iterations, kMostRuns)});
      return {};
    }
    const double ms = runs == 1 ? op.typical_ms * each : op.total_ms / iterations / runs;
    const Step step{
        .time = nanoseconds(std::max<std::int64_t>(1, std::llround(ms * 1e6))), .width = cores, .heavy = op.heavy};
    std::vector<Step>& kind = op.heavy ? heavy : light;
    kind.insert(kind.end(), static_cast<std::size_t>(runs), step);
  }
  return TakingTurns(heavy, light);
}

std::vector<Step> ReadRecordedIteration(const std::filesystem::path& folder, const std::string& name, double cores,
                                        std::vector<JsonMistake>& mistakes) {
  const auto file = IsPrintableUtf8(name) ? FileBelow(folder, name) : Invalid("it must be printable UTF-8");
  if (!file) {
    mistakes.push_back({"", file.error().message});
    return {};
  }
  const auto profile = ReadJsonFile(file->string(), kMostBytes);
  if (!profile) {
    mistakes.push_back({"", profile.error().message});
    return {};
  }
  return RecordedIteration(*profile, cores, mistakes);
}

}  // namespace tandem::cli
