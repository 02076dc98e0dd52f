#include "server/jobs/op_watch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"

namespace tandem::jobs {
namespace {

constexpr std::size_t kMostListed = 16;
constexpr std::size_t kMostEarly = 256;
constexpr std::size_t kMostBeside = 32;
// Of one operator, in a profile.
constexpr std::size_t kMostPairings = 4;

Json::Value NameJson(const OpInfo& op) {
  Json::Value json(Json::objectValue);
  json["kind"] = op.kind;
  json["name"] = op.name;
  return json;
}

void AddVerdict(const OpVerdict& verdict, Json::Value& json) {
  json["class"] = std::string(OpClassName(verdict.op_class));
  json["why"] = verdict.reason;
}

void AddEvidence(const Interference& seen, Json::Value& json) {
  json["ratio"] = seen.ratio;
  json["error"] = seen.error;
  json["runs"] = seen.runs;
}

const OpPairing* Find(std::span<const OpPairing> pairings, const std::string& model) {
  const auto found =
      std::ranges::lower_bound(pairings, model, {}, [](const OpPairing& pairing) { return pairing.seen.model; });
  return found == pairings.end() || found->seen.model != model ? nullptr : &*found;
}

// What it is taken for in that pairing; by its time as long as too little is known of that.
OpVerdict VerdictIn(const OpPairing& pairing, const WatchedOp& op) {
  if (!pairing.op_class) return op.by_time;
  return {.op_class = *pairing.op_class, .measured = true, .reason = pairing.Why()};
}

// The same of one that may not be there; for whoever asks whether it is heavy beside that model.
OpVerdict VerdictBeside(const std::string& model, const OpPairing* pairing) {
  if (pairing == nullptr || !pairing->op_class) {
    return {.reason = Format("too little is known of requests of {} beside it", model)};
  }
  return {.op_class = *pairing->op_class, .measured = true, .reason = pairing->Why()};
}

// What it does to requests of each model, the heaviest first.
Json::Value InterferenceJson(const WatchedOp& op) {
  std::vector<const OpPairing*> sorted;
  for (const OpPairing& pairing : op.pairings) sorted.push_back(&pairing);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, [](const OpPairing* pairing) { return pairing->weight(); });
  if (sorted.size() > kMostPairings) sorted.resize(kMostPairings);
  Json::Value list(Json::arrayValue);
  for (const OpPairing* pairing : sorted) {
    Json::Value json(Json::objectValue);
    json["model"] = pairing->seen.model;
    AddVerdict(VerdictIn(*pairing, op), json);
    AddEvidence(pairing->seen, json);
    list.append(std::move(json));
  }
  return list;
}

Json::Value OpJson(const WatchedOp& op, double all_ms) {
  Json::Value json = NameJson(op.totals.op);
  json["count"] = Json::UInt64{op.totals.count};
  json["total_ms"] = Ms(op.totals.total);
  json["typical_ms"] = Ms(op.totals.typical);
  json["share"] = all_ms > 0 ? Ms(op.totals.total) / all_ms : 0.0;
  json["gflop"] = op.totals.work.flops / 1e9;
  json["mb"] = static_cast<double>(op.totals.work.bytes) / 1e6;
  AddVerdict(op.verdict, json);
  json["interference"] = InterferenceJson(op);
  return json;
}

Json::Value ChangeJson(const OpWatch::Change& change) {
  Json::Value json = NameJson(change.op);
  if (!change.model.empty()) json["model"] = change.model;
  AddVerdict(change.now, json);
  json["before"] = change.before.reason;
  if (change.seen) AddEvidence(*change.seen, json);
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
    op.by_time = classifier_.ByTime(op.totals, op.by_time.op_class);
    ClassifyPairings(i, changes);
    const OpVerdict before = std::exchange(op.verdict, OpClassifier::Altogether(op.pairings, op.by_time));
    if (!is_new && before.op_class != op.verdict.op_class) {
      changes.push_back({.op = op.totals.op, .model = {}, .before = before, .now = op.verdict, .seen = {}});
    }
  }
  return changes;
}

void OpWatch::ClassifyPairings(std::size_t place, std::vector<Change>& changes) {
  WatchedOp& op = ops_[place];
  const std::vector<OpPairing> before = std::exchange(op.pairings, {});
  const auto tell = [&](const std::string& model, const OpPairing* then, const OpPairing* now) {
    if ((then != nullptr && then->heavy()) == (now != nullptr && now->heavy())) return;
    changes.push_back({.op = op.totals.op,
                       .model = model,
                       .before = VerdictBeside(model, then),
                       .now = VerdictBeside(model, now),
                       .seen = now == nullptr ? std::nullopt : std::optional(now->seen)});
  };
  for (Interference& seen : meter_.Of(static_cast<std::uint32_t>(place))) {
    const OpPairing* const then = Find(before, seen.model);
    const auto op_class = OpClassifier::Beside(seen, then == nullptr ? std::nullopt : then->op_class);
    op.pairings.push_back({.seen = std::move(seen), .op_class = op_class});
    tell(op.pairings.back().seen.model, then, &op.pairings.back());
  }
  for (const OpPairing& then : before) {
    if (Find(op.pairings, then.seen.model) == nullptr) tell(then.seen.model, &then, nullptr);
  }
}

std::vector<WatchedOp> OpWatch::OpsNow(const TrainerBoard& board) const {
  std::vector<WatchedOp> ops = ops_;
  std::vector<OpTotals> totals = board.Totals();
  for (std::size_t i = 0; i < std::min(ops.size(), totals.size()); ++i) ops[i].totals = std::move(totals[i]);
  return ops;
}

GatedPlaces OpWatch::Gated(ModelBits& models) const {
  GatedPlaces gated;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    ModelSet waits_for = 0;
    if (gate_ == GatedOps::kHeavy && ops_[i].verdict.op_class == OpClass::kHeavy) waits_for = kEveryModel;
    if (gate_ == GatedOps::kHeavyAsMeasured) {
      for (const OpPairing& pairing : ops_[i].pairings) {
        if (pairing.heavy()) waits_for |= SetOf(models.BitOf(pairing.seen.model));
      }
    }
    if (waits_for != 0) gated[i] = waits_for;
  }
  return gated;
}

std::vector<Json::Value> OpWatch::Beside(const std::string& model) const {
  std::vector<std::pair<const OpPairing*, const WatchedOp*>> known;
  for (const WatchedOp& op : ops_) {
    if (const OpPairing* const pairing = Find(op.pairings, model)) known.emplace_back(pairing, &op);
  }
  std::ranges::stable_sort(known, std::ranges::greater{}, [](const auto& one) { return one.first->seen.certain(); });
  if (known.size() > kMostBeside) known.resize(kMostBeside);
  std::vector<Json::Value> list;
  for (const auto& [pairing, op] : known) {
    Json::Value json = NameJson(op->totals.op);
    AddVerdict(VerdictIn(*pairing, *op), json);
    AddEvidence(pairing->seen, json);
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
  std::vector<const OpWatch::Change*> sorted;
  for (const OpWatch::Change& change : changes) sorted.push_back(&change);
  std::ranges::stable_partition(sorted, [](const OpWatch::Change* change) { return !change->model.empty(); });
  if (sorted.size() > kMostListed) sorted.resize(kMostListed);
  for (const OpWatch::Change* change : sorted) json["changes"].append(ChangeJson(*change));
  return json;
}

}  // namespace tandem::jobs
