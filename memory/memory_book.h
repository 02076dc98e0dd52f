#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "memory/device_budget.h"
#include "memory/lane_queue.h"
#include "memory/lane_table.h"
#include "memory/memory_map.h"

namespace tandem {

// Who has how much of a device's memory, by name, and who waits for it: a LaneTable and a LaneQueue of all that a
// server knows of.
//
// - What there is already is counted, whether there is room or not: the server's own parts, models that are loaded.
// - Jobs ask and wait. Each has a lane of its own as long as there is room for one, else it takes turns in another's.
// - Runs of models take turns: as many are under way at once as there are workers. So models share one lane, as long as
//   the largest E of them, and for each further worker there is one more lane of that length.
//
// Nobody waits for a boundary here: lanes change their length at once. One that becomes longer has its memory at once;
// of one that becomes shorter what is cut off is there until the end of the turn that it is in.
//
// A plain value: no clock, no lock, no I/O. Not thread-safe: its owner guards it.
class MemoryBook {
 public:
  MemoryBook(const DeviceBudget& budget, int workers);

  // Has this from now on. Of a model `need.ephemeral` is what one run takes.
  SessionId Count(MemoryKind kind, std::string name, const SessionNeed& need);
  // Turned out to need something else, whether there is room or not; or will, if it waits. Nothing for one that left.
  void Recount(SessionId session, const SessionNeed& need);
  // So much was seen of it.
  void Measure(SessionId session, std::uint64_t bytes);

  // A job that would like to begin; the smaller rank is first.
  SessionId Ask(std::string name, const SessionNeed& need, std::int64_t rank);
  // Who may begin now: it has its memory. nullopt: nobody.
  [[nodiscard]] std::optional<SessionId> AdmitNext();
  // It has ended, was unloaded, or waits no more. Nothing for one that left.
  void Leave(SessionId session);

  // kTooLarge with the numbers for a job that would wait for ever: for which there is no room even where nothing is
  // loaded and nothing else is trained.
  [[nodiscard]] Status CheckEverFits(const SessionNeed& need) const;
  // In words; empty when it does not wait, or not for memory. To find out whose end would be enough takes a while where
  // there are many.
  enum class Detail : std::uint8_t { kNumbers, kWhoseEnd };
  [[nodiscard]] std::string WhyWaiting(SessionId session, Detail detail) const;

  // What a job turned out to need before it has it. False, and nothing has changed: there is no room for that now, and
  // one day there is.
  [[nodiscard]] bool Expect(SessionId session, const SessionNeed& need);
  // It needs so much in its lane, if there is room for that; else nothing has changed. The length of the lane then.
  [[nodiscard]] std::uint64_t Grow(SessionId session, std::uint64_t ephemeral);
  struct Place {
    LaneId lane{};
    std::uint64_t length = 0;
    std::size_t sessions = 0;  // That take turns there.
  };
  // Where its E is; nullopt: it has no lane.
  [[nodiscard]] std::optional<Place> PlaceOf(SessionId session) const;

  void SetBudget(const DeviceBudget& budget);
  [[nodiscard]] const LaneTable& table() const { return table_; }
  [[nodiscard]] const LaneQueue& queue() const { return queue_; }
  [[nodiscard]] MemoryMap Map() const;

 private:
  struct Entry {
    MemoryKind kind;
    std::string name;
    std::optional<std::uint64_t> measured;
    std::uint64_t grown = 0;  // What a job was found to need in its lane; never less is promised to it there.
  };

  [[nodiscard]] SessionId Enter(MemoryKind kind, std::string name);
  void Have(SessionId session, const SessionNeed& need);
  // The lane in which runs of models are; nullopt: none is loaded.
  [[nodiscard]] std::optional<LaneId> RunLane() const;
  // Makes the lanes of the other workers as long as the models'.
  void FollowRuns();
  [[nodiscard]] std::string Words(SessionId waiting, const SessionNeed& need, Detail detail) const;
  [[nodiscard]] MemorySession Describe(SessionId session, const SessionNeed& need) const;

  DeviceBudget budget_;
  int workers_;
  LaneTable table_;
  LaneQueue queue_;
  std::map<SessionId, Entry> entries_;
  std::vector<SessionId> runs_;  // Of further workers; empty when no model is loaded.
  std::uint64_t named_ = 0;
};

}  // namespace tandem
