// What the operators of trainers take, and what they do to requests.

#include <fstream>
#include <system_error>

#include "api/wire/json_document.h"
#include "profiler/run_log.h"
#include "server/jobs/supervisor.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr std::chrono::seconds kBetweenClassEvents{30};
constexpr std::size_t kMostClassChanges = 256;
// A file of ours is never larger: an operator needs some hundred bytes, and as many for each model beside it that is
// told, of which there are a few; there are a few thousand operators.
constexpr std::uintmax_t kMostProfileBytes = 16 << 20;

}  // namespace

void Supervisor::WatchOps() {
  const MonotonicTime now = clock_.Now();
  if (options_.runs != nullptr) options_.runs->Watch(!active_.empty());
  if (active_.empty() || now - ops_looked_ < kBetweenLooks) return;
  ops_looked_ = now;
  const std::vector<RunSample> runs = options_.runs == nullptr ? std::vector<RunSample>() : options_.runs->Take();
  for (auto& [id, active] : active_) WatchOps(active, runs);
}

void Supervisor::WatchOps(Active& active, std::span<const RunSample> runs) {
  const TrainerBoard& board = active.trainer->process().board();
  std::chrono::nanoseconds stopped{0};
  for (const auto& [reason, time] : active.trainer->StoppedTimes()) stopped += time;
  const bool was_stopped = std::exchange(active.stopped, stopped) != stopped;
  for (OpWatch::Change& change : active.ops.Look(board, runs, was_stopped, clock_.Now())) {
    if (change.model.empty()) metrics_.Classified(change.now.op_class);
    if (active.class_changes.size() < kMostClassChanges) active.class_changes.push_back(std::move(change));
  }
  if (options_.arbiter != nullptr) active.trainer->SetGated(active.ops.Gated(options_.arbiter->models()));
  TellClasses(active, false);
  const AcknowledgementTimes times = active.trainer->Acknowledgements();
  metrics_.Acknowledged(times, std::exchange(active.counted_acknowledgements, times));
}

// A job keeps so many events; these must not push out all others.
void Supervisor::TellClasses(Active& active, bool last) {
  const MonotonicTime now = clock_.Now();
  if (active.class_changes.empty() || (!last && now - active.classes_told < kBetweenClassEvents)) return;
  active.classes_told = now;
  const auto changes = std::exchange(active.class_changes, {});
  AddEvent(active.record.id, "op_classes", JsonLine(ChangesToJson(changes)));
}

void Supervisor::SaveProfile(Active& active) {
  WatchOps(active, {});
  TellClasses(active, true);
  if (active.ops.ops().empty()) return;
  const std::filesystem::path file = active.folder.profile();
  std::filesystem::path aside = file;
  aside += ".new";
  std::ofstream out(aside);
  out << JsonLine(ProfileToJson(active.ops.ops()));
  out.close();
  std::error_code ec;
  if (out) std::filesystem::rename(aside, file, ec);
  if (!out || ec) {
    std::filesystem::remove(aside, ec);
    LogWarning("a profile could not be written", {{"job", std::to_string(active.record.id)}});
  }
}

Json::Value Supervisor::Beside(const std::string& model) const {
  Json::Value list(Json::arrayValue);
  for (const auto& [id, active] : active_) {
    for (Json::Value& op : active.ops.Beside(model)) {
      op["job"] = Json::Int64{id};
      list.append(std::move(op));
    }
  }
  return list;
}

std::vector<RecentOps> Supervisor::OpsSince(MonotonicTime since) const {
  std::vector<RecentOps> all;
  for (const auto& [id, active] : active_) {
    RecentOps& recent = all.emplace_back();
    recent.job = id;
    for (const WatchedOp& op : active.ops.ops()) {
      recent.ops.push_back({.info = op.totals.op, .heavy = op.verdict.op_class == OpClass::kHeavy});
    }
    recent.runs = active.trainer->process().board().Recent(since);
  }
  return all;
}

Result<Json::Value> Supervisor::Profile(JobId id) const {
  TANDEM_TRY(store_.Get(id));
  if (const auto active = active_.find(id); active != active_.end() && !active->second.ops.ops().empty()) {
    Json::Value json = ProfileToJson(active->second.ops.OpsNow(active->second.trainer->process().board()));
    json["live"] = true;
    return json;
  }
  const std::filesystem::path file = JobFolder::Of(options_.state, id).profile();
  std::error_code ec;
  const std::uintmax_t size = std::filesystem::file_size(file, ec);
  if (ec) return Fail(ErrorCode::kNotFound, "job {} has no profile: no trainer of it has run an operator yet", id);
  if (size > kMostProfileBytes) {
    return Fail(ErrorCode::kInternal, "the profile of job {} has {} bytes; it is none of ours", id, size);
  }
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto json = ParseStrictJson(text);
  if (!json || !json->isObject()) {
    return Fail(ErrorCode::kInternal, "the profile of job {} cannot be read: {}", id,
                json ? "it is no object" : json.error().message);
  }
  (*json)["live"] = false;
  return json;
}

}  // namespace tandem::jobs
