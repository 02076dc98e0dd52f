#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/base/result.h"
#include "memory/lane_table.h"

namespace tandem {

// The sessions that wait for memory. Of those who fit the one of the smallest rank is admitted, and of equals the one
// that came first. So whoever fits may overtake others who came before, and memory is not left idle for a large one;
// but only so often:
//
//   A session that would fit once all that end by themselves have ended is overtaken kMostOvertaken times at most.
//
// After that what becomes free is kept for it: nobody is admitted who came later, whatever his rank. So it waits no
// longer than until those who were admitted by then, and those who came before it, have ended. One that would not fit
// even so (more than the budget, or than what models that are served leave of it) keeps nobody waiting, until that
// changes.
//
// A plain value, as the table is: no clock, no lock. Not thread-safe: its owner guards it.
class LaneQueue {
 public:
  static constexpr int kMostOvertaken = 8;

  explicit LaneQueue(int most_overtaken = kMostOvertaken) : most_overtaken_(most_overtaken) {}

  struct Waiting {
    SessionId session{};
    SessionNeed need;
    std::int64_t rank = 0;
    int overtaken = 0;  // So many that came later were admitted.
  };

  // As the last to come. kConflict: it waits already.
  [[nodiscard]] Status Add(SessionId session, const SessionNeed& need, std::int64_t rank = 0);
  // It waits no more, and nobody was overtaken: it was cancelled. kNotFound.
  [[nodiscard]] Status Remove(SessionId session);
  // It keeps its place. kNotFound.
  [[nodiscard]] Status Correct(SessionId session, const SessionNeed& need);

  struct Turn {
    SessionId session{};
    SessionNeed need;
    LaneAnswer answer;  // Never kQueue.
  };
  // Who is to be admitted next, and to where; nullopt: nobody can be now. Pure: same queue and table, same turn.
  [[nodiscard]] std::optional<Turn> Next(const LaneTable& table) const { return LookAt(table).turn; }
  // For whom what becomes free is kept; nullopt: for nobody.
  [[nodiscard]] std::optional<SessionId> ReservedFor(const LaneTable& table) const { return LookAt(table).reserved; }
  // It was admitted: those who came before it were overtaken. kNotFound.
  [[nodiscard]] Status Take(SessionId session);

  // The first to come first. Until the queue changes.
  [[nodiscard]] std::span<const Waiting> waiting() const { return waiting_; }

 private:
  struct Look {
    std::optional<Turn> turn;
    std::optional<SessionId> reserved;
  };
  [[nodiscard]] Look LookAt(const LaneTable& table) const;
  // kNotFound.
  [[nodiscard]] Result<std::vector<Waiting>::iterator> Find(SessionId session);

  int most_overtaken_;
  std::vector<Waiting> waiting_;
};

}  // namespace tandem
