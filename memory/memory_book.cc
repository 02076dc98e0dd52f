#include "memory/memory_book.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "api/base/byte_text.h"
#include "memory/lane_outlook.h"

namespace tandem {
namespace {

// No machine has so much, and no sum of what can be there overflows with it.
constexpr std::uint64_t kMostOfOne = std::uint64_t{1} << 48;

// As many as anybody reads.
constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kMostInDetail = 16;

// As the table is to have it. Runs of models take turns with one another, jobs with one another unless they cannot, and
// only jobs end by themselves.
SessionNeed Shaped(MemoryKind kind, const SessionNeed& need) {
  return {.persistent = std::min(need.persistent, kMostOfOne),
          .ephemeral = std::min(need.ephemeral, kMostOfOne),
          .stays = kind != MemoryKind::kJob || need.stays,
          .alone = kind == MemoryKind::kJob ? need.alone : kind != MemoryKind::kModel,
          .company = kind == MemoryKind::kJob ? LaneCompany::kTraining : LaneCompany::kServing};
}

std::string NeedWords(const SessionNeed& need) {
  return Format("needs P {} + E {}", ByteText(need.persistent), ByteText(need.ephemeral));
}

std::string ListWords(const std::vector<std::string>& names) {
  std::string words;
  const std::size_t named = std::min(names.size(), kMostNamed);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) words += i + 1 == names.size() ? " and " : ", ";
    words += names[i];
  }
  if (names.size() > named) AppendFormat(words, " and {} more", names.size() - named);
  return words;
}

}  // namespace

std::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kServer: return "server";
    case MemoryKind::kModel: return "model";
    case MemoryKind::kRuns: return "runs";
    case MemoryKind::kJob: return "job";
  }
  return "job";
}

std::uint64_t MemoryMap::Persistent(MemoryKind kind) const {
  std::uint64_t sum = 0;
  for (const MemorySession& session : sessions) {
    if (session.kind == kind) sum += session.need.persistent;
  }
  return sum;
}

MemoryBook::MemoryBook(const DeviceBudget& budget, int workers)
    : budget_(budget), workers_(std::max(workers, 1)), table_(budget.bytes) {}

SessionId MemoryBook::Enter(MemoryKind kind, std::string name) {
  const SessionId id{++named_};
  entries_.emplace(id, Entry{.kind = kind, .name = std::move(name), .measured = std::nullopt});
  return id;
}

SessionId MemoryBook::Count(MemoryKind kind, std::string name, const SessionNeed& need) {
  const SessionId id = Enter(kind, std::move(name));
  Have(id, need);
  FollowRuns();
  return id;
}

void MemoryBook::Have(SessionId session, const SessionNeed& need) {
  const MemoryKind kind = entries_.at(session).kind;
  const Status had = table_.Have(session, Shaped(kind, need), kind == MemoryKind::kModel ? RunLane() : std::nullopt);
  if (!had) {
    std::fputs(Format("tandem: memory cannot be counted: {}\n", had.error().message).c_str(), stderr);
    std::abort();
  }
  table_.BoundaryOfAll();
}

std::optional<LaneId> MemoryBook::RunLane() const {
  for (const auto& [id, entry] : entries_) {
    if (entry.kind != MemoryKind::kModel) continue;
    if (const auto place = table_.Find(id)) return place->lane;
  }
  return std::nullopt;
}

void MemoryBook::FollowRuns() {
  const auto lane = RunLane();
  const auto found = std::ranges::find(table_.lanes(), lane.value_or(LaneId{}), &Lane::id);
  const std::uint64_t length = lane ? found->next : 0;
  if (length == 0) {
    for (const SessionId id : std::exchange(runs_, {})) Leave(id);
    return;
  }
  for (int worker = static_cast<int>(runs_.size()) + 2; worker <= workers_; ++worker) {
    runs_.push_back(Enter(MemoryKind::kRuns, Format("runs on worker {}", worker)));
  }
  for (const SessionId id : runs_) Have(id, {.ephemeral = length});
}

void MemoryBook::Recount(SessionId session, const SessionNeed& need) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end() || queue_.Correct(session, Shaped(entry->second.kind, need))) return;
  const auto place = PlaceOf(session);
  if (entry->second.kind == MemoryKind::kJob && place && place->sessions > 1) {
    SessionNeed known = need;
    known.ephemeral = std::max(known.ephemeral, entry->second.grown);
    if (table_.Correct(session, Shaped(MemoryKind::kJob, known))) return table_.BoundaryOfAll();
    // What it is to need in a lane that others have, too, it does not have yet: it is stopped there. The rest it has.
    known.ephemeral = table_.Find(session)->need.ephemeral;
    return Have(session, known);
  }
  Have(session, need);
  FollowRuns();
}

void MemoryBook::Measure(SessionId session, std::uint64_t bytes) {
  const auto entry = entries_.find(session);
  if (entry != entries_.end()) entry->second.measured = bytes;
}

SessionId MemoryBook::Ask(std::string name, const SessionNeed& need, std::int64_t rank) {
  const SessionId id = Enter(MemoryKind::kJob, std::move(name));
  // It cannot wait already: its number is new.
  (void)queue_.Add(id, Shaped(MemoryKind::kJob, need), rank);
  return id;
}

std::optional<SessionId> MemoryBook::AdmitNext() {
  const auto turn = queue_.Next(table_);
  // The answer is of this table, as it is.
  if (!turn || !table_.Admit(turn->session, turn->need, turn->answer)) return std::nullopt;
  (void)queue_.Take(turn->session);
  return turn->session;
}

void MemoryBook::Leave(SessionId session) {
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  const bool model = entry->second.kind == MemoryKind::kModel;
  entries_.erase(entry);
  if (queue_.Remove(session)) return;
  (void)table_.Leave(session);
  table_.BoundaryOfAll();
  if (model) FollowRuns();
}

Status MemoryBook::CheckEverFits(const SessionNeed& need) const {
  LaneTable empty(budget_.bytes);
  for (const auto& [id, entry] : entries_) {
    const auto place = table_.Find(id);
    if (entry.kind != MemoryKind::kServer || !place) continue;
    TANDEM_TRY(empty.Have(id, place->need));
  }
  if (empty.FindLane(Shaped(MemoryKind::kJob, need)).fit != LaneFit::kQueue) return {};
  return Fail(
      ErrorCode::kTooLarge,
      "the job {}; of the memory budget of {} ({}) the server itself needs {}, so {} is the most that a job "
      "can have. A smaller batch needs less, and so does memory: fit; /memory says how much the job may have at "
      "most",
      NeedWords(need), ByteText(budget_.bytes), BudgetWords(budget_), ByteText(empty.use().total()),
      ByteText(empty.free()));
}

std::string MemoryBook::WhyWaiting(SessionId session, Detail detail) const {
  const auto waiting = std::ranges::find(queue_.waiting(), session, &LaneQueue::Waiting::session);
  return waiting == queue_.waiting().end() ? "" : Words(session, waiting->need, detail);
}

std::string MemoryBook::Words(SessionId waiting, const SessionNeed& need, Detail detail) const {
  const LaneAnswer answer = table_.FindLane(need);
  std::string words = "waits for memory: " + NeedWords(need);
  if (answer.fit != LaneFit::kQueue) {
    const auto kept = queue_.ReservedFor(table_);
    if (!kept || *kept == waiting) return "";
    return words +
           Format("; {} are kept for {}, which has waited longer", ByteText(table_.free()), entries_.at(*kept).name);
  }
  AppendFormat(words, "; free {}", ByteText(table_.free()));
  if (table_.overhang() > 0) AppendFormat(words, ", {} too much in use", ByteText(table_.overhang()));
  if (detail == Detail::kNumbers) return words;
  if (OnceOthersEnd(table_).FindLane(need).fit != LaneFit::kQueue) {
    std::vector<std::string> names;
    for (const SessionId id : WhoMustLeave(table_, need)) names.push_back(entries_.at(id).name);
    return words + Format("; would fit when {} {}", ListWords(names), names.size() == 1 ? "ends" : "end");
  }
  if (CheckEverFits(need)) return words + "; would fit with fewer models loaded, or when paused jobs end";
  return words + Format("; the budget of {} leaves no room for it at all", ByteText(budget_.bytes));
}

bool MemoryBook::Expect(SessionId session, const SessionNeed& need) {
  if (!table_.Find(session)) return true;
  if (table_.Correct(session, Shaped(MemoryKind::kJob, need))) {
    table_.BoundaryOfAll();
    return true;
  }
  if (CheckEverFits(need)) return false;
  Have(session, need);
  return true;
}

std::uint64_t MemoryBook::Grow(SessionId session, std::uint64_t ephemeral) {
  const auto found = table_.Find(session);
  if (!found) return 0;
  SessionNeed need = found->need;
  need.ephemeral = std::max(need.ephemeral, std::min(ephemeral, kMostOfOne));
  if (table_.Correct(session, need)) {
    table_.BoundaryOfAll();
    entries_.at(session).grown = need.ephemeral;
  }
  return PlaceOf(session)->length;
}

std::optional<MemoryBook::Place> MemoryBook::PlaceOf(SessionId session) const {
  const auto place = table_.Find(session);
  if (!place) return std::nullopt;
  const auto lane = std::ranges::find(table_.lanes(), place->lane, &Lane::id);
  return Place{.lane = lane->id, .length = lane->counted(), .sessions = lane->sessions.size()};
}

void MemoryBook::SetBudget(const DeviceBudget& budget) {
  budget_ = budget;
  table_.SetBudget(budget.bytes);
}

MemorySession MemoryBook::Describe(SessionId session, const SessionNeed& need) const {
  const Entry& entry = entries_.at(session);
  MemorySession described{
      .id = session, .kind = entry.kind, .name = entry.name, .need = need, .measured = entry.measured};
  if (const auto place = table_.Find(session); place && need.ephemeral > 0) described.lane = place->lane;
  return described;
}

MemoryMap MemoryBook::Map() const {
  MemoryMap map{.budget = budget_, .use = table_.use(), .free = table_.free(), .overhang = table_.overhang()};
  for (const Lane& lane : table_.lanes()) {
    if (lane.counted() > 0) map.lanes.push_back(lane);
    for (const LaneSession& session : lane.sessions) map.sessions.push_back(Describe(session.id, session.need));
  }
  std::ranges::sort(map.sessions, {}, &MemorySession::id);
  for (const LaneQueue::Waiting& one : queue_.waiting()) {
    const Detail detail = map.waiting.size() < kMostInDetail ? Detail::kWhoseEnd : Detail::kNumbers;
    map.waiting.push_back({.session = Describe(one.session, one.need),
                           .overtaken = one.overtaken,
                           .reason = Words(one.session, one.need, detail)});
  }
  map.kept_for = queue_.ReservedFor(table_);
  return map;
}

}  // namespace tandem
