#include "server/cli/simulate_scenario.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_fields.h"
#include "api/wire/json_text.h"
#include "server/cli/simulate_profile.h"

namespace tandem::cli {
namespace {

using simulation::DeviceKind;
using simulation::Model;
using simulation::Scenario;
using simulation::Step;
using simulation::Trainer;
using std::chrono::nanoseconds;
using Mistakes = std::vector<JsonMistake>;

constexpr std::size_t kMostMistakes = 20;  // That are told.
constexpr std::size_t kMaxName = 100;
constexpr std::size_t kMaxCases = 100;
constexpr std::size_t kMaxModels = 64;
constexpr std::size_t kMaxTrainers = 32;
constexpr std::size_t kMaxOps = 10'000;     // That a list may have,
constexpr std::size_t kMaxSteps = 100'000;  // and that may come of it.
constexpr int kMaxRepeat = 100'000;
constexpr int kMaxRounds = 1000;
constexpr int kMaxWidth = 4096;
constexpr int kMaxWorkers = 64;
constexpr int kMaxBatch = 1024;
constexpr double kMinMs = 1e-3;
constexpr double kMaxMs = 1e6;
constexpr double kMaxRate = 1e6;
constexpr double kMinRate = 1e-6;
constexpr double kMaxSeconds = 1e7;
// What a simulation may hold, and how long it may take.
constexpr double kMaxRequests = 2e7;
constexpr double kMaxEvents = 1e10;

nanoseconds FromMs(double ms) {
  return nanoseconds(std::llround(ms * 1e6));
}

// What a file does not say itself. Borrowed.
struct Outside {
  const SimulationChanges& changes;
  const std::filesystem::path& folder;  // Of the file.
};

// What the readers of a scenario share.
struct DeviceFacts {
  Mistakes& mistakes;
  const std::filesystem::path& folder;  // Of the scenario.
  DeviceKind kind = DeviceKind::kCpu;
  double width = 1;        // Of the device.
  double heavy_share = 0;  // Of it; steps as wide as that are heavy.

  [[nodiscard]] const char* width_name() const { return kind == DeviceKind::kCpu ? "cores" : "width"; }
};

void ReadName(JsonFields& fields, const Json::Value& json, std::string& name) {
  fields.Text("name", name);
  if (!json.isMember("name")) fields.Missing("name", "it is what results are shown under");
  if (name.size() > kMaxName || !IsPrintableUtf8(name)) {
    fields.Mistake(fields.PointerTo("name"), name, Format("at most {} printable bytes of UTF-8", kMaxName));
  }
}

// The objects of a list; nothing when it is absent or wrong, which is noted.
std::vector<std::pair<const Json::Value*, std::string>> ReadList(JsonFields& fields, const char* name,
                                                                 std::size_t least, std::size_t most) {
  std::vector<std::pair<const Json::Value*, std::string>> objects;
  const Json::Value* const list = fields.Find(name);
  if (list == nullptr) {
    if (least > 0) fields.Missing(name, Format("a list of {} to {} objects", least, most));
    return objects;
  }
  if (!list->isArray() || list->size() < least || list->size() > most) {
    fields.Mistake(fields.PointerTo(name), *list, Format("a list of {} to {} objects", least, most));
    return objects;
  }
  for (Json::ArrayIndex i = 0; i < list->size(); ++i) {
    const std::string pointer = Format("{}/{}", fields.PointerTo(name), i);
    if ((*list)[i].isObject()) {
      objects.emplace_back(&(*list)[i], pointer);
    } else {
      fields.Mistake(pointer, (*list)[i], "an object");
    }
  }
  return objects;
}

void Require(JsonFields& fields, const Json::Value& json, const char* name, const char* why) {
  if (!json.isMember(name)) fields.Missing(name, why);
}

// One operator or kernel, as often as it is repeated.
void ReadOp(const DeviceFacts& device, const Json::Value& json, const std::string& pointer, std::vector<Step>& steps) {
  JsonFields fields(json, pointer, device.mistakes);
  std::string name;
  double ms = 1;
  int repeat = 1;
  Step step{.width = device.width};
  fields.Text("name", name);
  fields.Number("time_ms", ms, kMinMs, kMaxMs);
  Require(fields, json, "time_ms", "what it takes alone");
  fields.Number(device.width_name(), step.width, 0, device.width);
  fields.Whole("repeat", repeat, 1, kMaxRepeat);
  step.heavy = step.width > 0 && step.width >= device.heavy_share * device.width;
  fields.Flag("heavy", step.heavy);
  fields.Finish();
  step.time = FromMs(ms);
  if (steps.size() + static_cast<std::size_t>(repeat) > kMaxSteps) {
    return fields.Mistake(pointer, json, Format("one of at most {} steps in all", kMaxSteps));
  }
  steps.insert(steps.end(), static_cast<std::size_t>(repeat), step);
}

std::vector<Step> ReadOps(const DeviceFacts& device, JsonFields& fields, const char* name) {
  std::vector<Step> steps;
  for (const auto& [json, pointer] : ReadList(fields, name, 1, kMaxOps)) ReadOp(device, *json, pointer, steps);
  return steps;
}

// What several threads bring over one: no more than the cores that they keep busy.
double ReadSpeedup(JsonFields& fields, const std::vector<Step>& steps) {
  // What is wrong with them was told; there is nothing to compare with.
  if (steps.empty()) {
    static_cast<void>(fields.Find("speedup"));
    return 1;
  }
  double widest = 1;
  for (const Step& step : steps) widest = std::max(widest, step.width);
  double speedup = widest;
  fields.Number("speedup", speedup, 1, widest);
  return speedup;
}

Model ReadModel(const DeviceFacts& device, const Json::Value& json, const std::string& pointer) {
  Model model;
  JsonFields fields(json, pointer, device.mistakes);
  ReadName(fields, json, model.name);
  fields.Number("rate", model.rate, kMinRate, kMaxRate);
  Require(fields, json, "rate", "requests per second");
  constexpr std::pair<std::string_view, bool> kArrivals[] = {{"poisson", true}, {"constant", false}};
  fields.Choice("arrivals", model.poisson, kArrivals);
  std::optional<double> slo_ms;
  double overhead_ms = 0;
  fields.Number("slo_ms", slo_ms, kMinMs, kMaxMs);
  fields.Number("overhead_ms", overhead_ms, 0, kMaxMs);
  fields.Whole("max_batch", model.max_batch, 1, kMaxBatch);
  fields.Number("batch_growth", model.growth, 0, 1);
  fields.Number("spread", model.spread, 0, 2);
  if (slo_ms) model.slo = FromMs(*slo_ms);
  model.overhead = FromMs(overhead_ms);
  if (device.kind == DeviceKind::kGpu) {
    model.steps = ReadOps(device, fields, "kernels");
  } else {
    double ms = 1;
    Step run{.width = device.width};
    fields.Number("service_ms", ms, kMinMs, kMaxMs);
    Require(fields, json, "service_ms", "what a run of one request takes alone");
    fields.Number("cores", run.width, {.least = 0, .most = device.width, .above = true});
    double front_ms = 0;
    fields.Number("front_ms", front_ms, 0, ms);
    model.front = FromMs(front_ms);
    run.time = FromMs(ms);
    model.steps = {run};
    model.speedup = ReadSpeedup(fields, model.steps);
  }
  fields.Finish();
  return model;
}

// What was recorded of a job in place of its operators.
std::vector<Step> ReadProfile(const DeviceFacts& device, JsonFields& fields, const Json::Value& named) {
  double cores = device.width;
  fields.Number("cores", cores, {.least = 0, .most = device.width, .above = true});
  const std::string pointer = fields.PointerTo("profile");
  if (!named.isString() || named.asString().empty()) {
    fields.Mistake(pointer, named, "the name of a file that tandem profile JOB --json wrote");
    return {};
  }
  if (fields.Find("ops") != nullptr) fields.Contradiction("ops", Format("{} is there, too", pointer));
  Mistakes within;
  std::vector<Step> steps = ReadRecordedIteration(device.folder, named.asString(), cores, within);
  for (const JsonMistake& mistake : within) {
    const char* const in = mistake.pointer.empty() ? "but" : "in which";
    device.mistakes.push_back({pointer, Format("{} is {}, {} {}", pointer, JsonExcerpt(named), in, mistake.message)});
  }
  return steps;
}

Trainer ReadTrainer(const DeviceFacts& device, const Json::Value& json, const std::string& pointer) {
  Trainer trainer;
  JsonFields fields(json, pointer, device.mistakes);
  ReadName(fields, json, trainer.name);
  const Json::Value* const profile = device.kind == DeviceKind::kCpu ? fields.Find("profile") : nullptr;
  if (profile != nullptr) {
    trainer.steps = ReadProfile(device, fields, *profile);
  } else {
    trainer.steps = ReadOps(device, fields, device.kind == DeviceKind::kGpu ? "kernels" : "ops");
  }
  if (device.kind == DeviceKind::kCpu) {
    trainer.speedup = ReadSpeedup(fields, trainer.steps);
    fields.Flag("lockstep", trainer.lockstep);
  }
  fields.Finish();
  return trainer;
}

void ReadDevice(JsonFields& outer, Scenario& scenario, DeviceFacts& device) {
  const Json::Value* const json = outer.Object("device");
  if (json == nullptr) {
    if (outer.Find("device") == nullptr) outer.Missing("device", "what requests and training run on");
    return;
  }
  simulation::Machine& machine = scenario.machine;
  JsonFields fields(*json, "/device", device.mistakes);
  constexpr std::pair<std::string_view, DeviceKind> kKinds[] = {{"cpu", DeviceKind::kCpu}, {"gpu", DeviceKind::kGpu}};
  fields.Choice("kind", machine.kind, kKinds);
  Require(fields, *json, "kind", R"("cpu" or "gpu")");
  const char* const width = machine.kind == DeviceKind::kCpu ? "cores" : "sms";
  fields.Whole(width, machine.width, 1, kMaxWidth);
  Require(fields, *json, width, "how wide it is");
  fields.Whole("workers", machine.workers, machine.kind == DeviceKind::kCpu ? 0 : 1, kMaxWorkers);
  device.heavy_share = 0.5;
  fields.Number("heavy_share", device.heavy_share, 0, 1);
  if (machine.kind == DeviceKind::kCpu) {
    fields.Number("speed_beside_training", machine.speed_beside_training, 0.1, 10);
    std::optional<double> quota;
    double period_ms = 100;
    fields.Number("quota_cores", quota, 0.01, kMaxWidth);
    fields.Number("period_ms", period_ms, 1, 1000);
    const nanoseconds period = FromMs(period_ms);
    if (quota) machine.limit = CpuLimit{.quota = FromMs(*quota * period_ms), .period = period};
  }
  fields.Finish();
  device.kind = machine.kind;
  device.width = machine.width;
}

template <typename Item>
void CheckNames(const std::vector<Item>& items, const char* pointer, Mistakes& mistakes) {
  std::set<std::string> names;
  for (const Item& item : items) {
    if (item.name.empty() || names.insert(item.name).second) continue;
    mistakes.push_back({pointer, Format("{}: '{}' is there twice", pointer, Excerpt(item.name))});
  }
}

// How much there is to simulate; only of a scenario without mistakes.
void CheckAmount(const Scenario& scenario, int rounds, Mistakes& mistakes) {
  const double seconds = rounds * Seconds(scenario.warmup + scenario.duration);
  const double drained = seconds + rounds * Seconds(scenario.drain);
  double requests = 0;
  double events = 0;
  for (const Model& model : scenario.models) {
    requests += model.rate * seconds;
    events += model.rate * seconds * static_cast<double>(1 + model.steps.size());
  }
  for (const Trainer& trainer : scenario.trainers) {
    nanoseconds iteration{0};
    for (const Step& step : trainer.steps) iteration += step.time;
    events += drained / Seconds(iteration) * static_cast<double>(trainer.steps.size());
  }
  if (requests > kMaxRequests || events > kMaxEvents) {
    mistakes.push_back({"/seconds", Format("/seconds is {}: these would be {:.3g} requests and {:.3g} steps; at most "
                                           "{:.3g} and {:.3g} can be simulated",
                                           Seconds(scenario.duration), requests, events, kMaxRequests, kMaxEvents)});
  }
}

void Change(Scenario& scenario, int rounds, const SimulationChanges& changes) {
  double rate = 0;
  for (const Model& model : scenario.models) rate += model.rate;
  const auto set = [&](double seconds) {
    scenario.duration = nanoseconds(std::llround(std::clamp(seconds, 1e-3, kMaxSeconds) * 1e9));
  };
  if (changes.seconds) set(*changes.seconds);
  if (changes.requests && rate > 0) set(*changes.requests / rate / rounds);
  if (changes.seed) scenario.seed = *changes.seed;
}

void ReadScenario(JsonFields& fields, const Outside& outside, Mistakes& mistakes, SimulatedCase& simulated) {
  Scenario& scenario = simulated.scenario;
  DeviceFacts device{.mistakes = mistakes, .folder = outside.folder};
  double seconds = 60;
  double warmup = 1;
  fields.Number("seconds", seconds, 1e-3, kMaxSeconds);
  double drain = 0;
  fields.Number("warmup_s", warmup, 0, kMaxSeconds);
  fields.Number("drain_s", drain, 0, kMaxSeconds);
  fields.Whole("rounds", simulated.rounds, 1, kMaxRounds);
  scenario.duration = FromMs(seconds * 1e3);
  scenario.warmup = FromMs(warmup * 1e3);
  scenario.drain = FromMs(drain * 1e3);
  fields.Whole("seed", scenario.seed, 0, std::numeric_limits<std::int64_t>::max());
  const std::pair<std::string_view, std::string> kAdmissions[] = {{"deadline", "deadline"}, {"queue", "queue"}};
  fields.Choice("admission", scenario.admission, kAdmissions);
  fields.Whole("max_queue", scenario.max_queued, 1, 1'000'000);
  ReadDevice(fields, scenario, device);
  for (const auto& [json, pointer] : ReadList(fields, "models", 0, kMaxModels)) {
    scenario.models.push_back(ReadModel(device, *json, pointer));
  }
  for (const auto& [json, pointer] : ReadList(fields, "trainers", 0, kMaxTrainers)) {
    scenario.trainers.push_back(ReadTrainer(device, *json, pointer));
  }
  CheckNames(scenario.models, "/models", mistakes);
  CheckNames(scenario.trainers, "/trainers", mistakes);
  if (scenario.models.empty() && scenario.trainers.empty() && mistakes.empty()) {
    fields.Missing("models", "without requests and training there is nothing to simulate");
  }
  Change(scenario, simulated.rounds, outside.changes);
  if (mistakes.empty()) CheckAmount(scenario, simulated.rounds, mistakes);
}

Status Told(const Mistakes& mistakes, const std::string& of_case) {
  if (mistakes.empty()) return {};
  std::string text = mistakes.size() == 1 ? "has a mistake" : "has mistakes";
  if (!of_case.empty()) text += Format(" in the case '{}'", Excerpt(of_case));
  text += ":";
  for (std::size_t i = 0; i < std::min(mistakes.size(), kMostMistakes); ++i) text += "\n  " + mistakes[i].message;
  if (mistakes.size() > kMostMistakes) text += Format("\n  and {} more", mistakes.size() - kMostMistakes);
  return Fail(ErrorCode::kInvalidArgument, "{}", text);
}

// The scenario with what the case has of its own in place of what the file has.
Result<SimulatedCase> ReadCase(const Json::Value& whole, const Json::Value& own, const std::string& pointer,
                               const Outside& outside) {
  SimulatedCase result;
  Mistakes mistakes;
  JsonFields named(own, pointer, mistakes);
  ReadName(named, own, result.name);
  TANDEM_TRY(Told(mistakes, ""));
  Json::Value merged = whole;
  merged.removeMember("cases");
  for (const std::string& member : own.getMemberNames()) {
    if (member != "name") merged[member] = own[member];
  }
  JsonFields fields(merged, "", mistakes);
  for (const char* outer : {"name", "what", "source"}) static_cast<void>(fields.Find(outer));
  ReadScenario(fields, outside, mistakes, result);
  fields.Finish();
  TANDEM_TRY(Told(mistakes, result.name));
  return result;
}

Result<SimulationFile> FromJson(const Json::Value& json, const Outside& outside) {
  SimulationFile file;
  Mistakes mistakes;
  JsonFields fields(json, "", mistakes);
  ReadName(fields, json, file.name);
  fields.Text("what", file.what);
  std::string source;
  fields.Text("source", source);
  if (!json.isMember("cases")) {
    ReadScenario(fields, outside, mistakes, file.cases.emplace_back());
    fields.Finish();
    TANDEM_TRY(Told(mistakes, ""));
    return file;
  }
  const auto cases = ReadList(fields, "cases", 1, kMaxCases);
  TANDEM_TRY(Told(mistakes, ""));
  for (const auto& [own, pointer] : cases) {
    TANDEM_ASSIGN(SimulatedCase one, ReadCase(json, *own, pointer, outside));
    file.cases.push_back(std::move(one));
  }
  CheckNames(file.cases, "/cases", mistakes);
  TANDEM_TRY(Told(mistakes, ""));
  return file;
}

}  // namespace

Result<SimulationFile> ParseSimulation(std::string_view text, const SimulationChanges& changes,
                                       const std::filesystem::path& folder) {
  TANDEM_ASSIGN(const Json::Value json, ParseStrictJson(text));
  if (!json.isObject()) return Invalid("must be an object, not {}", JsonExcerpt(json));
  return FromJson(json, {.changes = changes, .folder = folder});
}

Result<SimulationFile> ReadSimulation(const std::string& file, const SimulationChanges& changes) {
  TANDEM_ASSIGN(const Json::Value json, ReadJsonFile(file));
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  auto parsed = FromJson(json, {.changes = changes, .folder = folder});
  if (!parsed) return Fail(parsed.error().code, "'{}' {}", file, parsed.error().message);
  return parsed;
}

}  // namespace tandem::cli
