#include "server/jobs/op_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/base/duration.h"

namespace tandem::jobs {
namespace {

constexpr std::size_t kMostListed = 16;
constexpr std::size_t kMostEarly = 256;
constexpr std::size_t kMostBeside = 32;

Json::Value NameJson(const OpInfo& op) {
  Json::Value json(Json::objectValue);
  json["kind"] = op.kind;
  json["name"] = op.name;
  return json;
}

Json::Value OpJson(const WatchedOp& op, double all_ms) {
  Json::Value json = NameJson(op.totals.op);
  json["count"] = Json::UInt64{op.totals.count};
  json["total_ms"] = Ms(op.totals.total);
  json["typical_ms"] = Ms(op.totals.typical);
  json["share"] = all_ms > 0 ? Ms(op.totals.total) / all_ms : 0.0;
  json["gflop"] = op.totals.work.flops / 1e9;
  json["mb"] = static_cast<double>(op.totals.work.bytes) / 1e6;
  json["class"] = std::string(OpClassName(op.verdict.op_class));
  json["why"] = op.verdict.reason;
  json["interference"] = Json::Value();
  if (op.worst) {
    Json::Value& worst = json["interference"];
    worst["model"] = op.worst->model;
    worst["ratio"] = op.worst->ratio;
    worst["error"] = op.worst->error;
    worst["runs"] = op.worst->runs;
  }
  return json;
}

}  // namespace

void OpWatch::Measure(const TrainerBoard& board, std::span<const RunSample> runs) {
  const std::vector<OpRecord> recent = board.Recent({});
  std::vector<RunSample> waiting = std::exchange(early_, {});
  waiting.insert(waiting.end(), runs.begin(), runs.end());
  if (recent.empty()) return;
  for (RunSample& run : waiting) {
    // Of what ran before the oldest that is kept, nothing is known; of what runs still, not yet.
    if (run.began < recent.front().began) continue;
    if (run.ended > recent.back().ended()) {
      if (early_.size() < kMostEarly) early_.push_back(std::move(run));
    } else {
      meter_.Observe(run, recent);
    }
  }
}

std::vector<OpWatch::Change> OpWatch::Look(const TrainerBoard& board, std::span<const RunSample> runs, bool was_stopped,
                                           MonotonicTime now) {
  if (looked_) meter_.Age(now - *looked_);
  looked_ = now;
  if (was_stopped) {
    early_.clear();
  } else {
    Measure(board, runs);
  }
  std::vector<OpTotals> totals = board.Totals();
  std::vector<Change> changes;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const bool is_new = i >= ops_.size();
    if (is_new) ops_.emplace_back();
    WatchedOp& op = ops_[i];
    op.totals = std::move(totals[i]);
    op.worst = meter_.Worst(static_cast<std::uint32_t>(i));
    const OpVerdict before = std::exchange(op.verdict, classifier_.Classify(op.totals, op.worst, op.verdict));
    if (!is_new && before.op_class != op.verdict.op_class) {
      changes.push_back({.op = op.totals.op, .before = before, .now = op.verdict});
    }
  }
  return changes;
}

std::vector<WatchedOp> OpWatch::OpsNow(const TrainerBoard& board) const {
  std::vector<WatchedOp> ops = ops_;
  std::vector<OpTotals> totals = board.Totals();
  for (std::size_t i = 0; i < std::min(ops.size(), totals.size()); ++i) ops[i].totals = std::move(totals[i]);
  return ops;
}

std::set<std::size_t> OpWatch::Gated() const {
  std::set<std::size_t> gated;
  if (gate_ == GatedOps::kNone) return gated;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const OpVerdict& verdict = ops_[i].verdict;
    const bool counts = gate_ == GatedOps::kHeavy || verdict.measured;
    if (verdict.op_class == OpClass::kHeavy && counts) gated.insert(i);
  }
  return gated;
}

std::vector<Json::Value> OpWatch::Beside(const std::string& model) const {
  std::vector<std::pair<Interference, const WatchedOp*>> known;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    if (auto pairing = meter_.With(model, static_cast<std::uint32_t>(i))) known.emplace_back(*pairing, &ops_[i]);
  }
  std::ranges::stable_sort(known, std::ranges::greater{}, [](const auto& one) { return one.first.certain(); });
  if (known.size() > kMostBeside) known.resize(kMostBeside);
  std::vector<Json::Value> list;
  for (const auto& [pairing, op] : known) {
    Json::Value json = NameJson(op->totals.op);
    json["class"] = std::string(OpClassName(op->verdict.op_class));
    json["why"] = op->verdict.reason;
    json["ratio"] = pairing.ratio;
    json["error"] = pairing.error;
    json["runs"] = pairing.runs;
    list.push_back(std::move(json));
  }
  return list;
}

Json::Value ProfileToJson(std::span<const WatchedOp> ops) {
  std::vector<const WatchedOp*> sorted;
  double all_ms = 0;
  for (const WatchedOp& op : ops) {
    if (op.totals.count == 0) continue;
    sorted.push_back(&op);
    all_ms += Ms(op.totals.total);
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const WatchedOp* op) { return op->totals.total; });
  Json::Value json(Json::objectValue);
  json["total_ms"] = all_ms;
  json["ops"] = Json::Value(Json::arrayValue);
  for (const WatchedOp* op : sorted) json["ops"].append(OpJson(*op, all_ms));
  return json;
}

Json::Value ChangesToJson(std::span<const OpWatch::Change> changes) {
  Json::Value json(Json::objectValue);
  json["count"] = Json::UInt64{changes.size()};
  json["changes"] = Json::Value(Json::arrayValue);
  for (const OpWatch::Change& change : changes.first(std::min(changes.size(), kMostListed))) {
    Json::Value one = NameJson(change.op);
    one["class"] = std::string(OpClassName(change.now.op_class));
    one["why"] = change.now.reason;
    one["before"] = change.before.reason;
    json["changes"].append(std::move(one));
  }
  return json;
}

}  // namespace tandem::jobs
