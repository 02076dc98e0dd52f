#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "colocation/acknowledgement_times.h"
#include "colocation/model_bits.h"
#include "colocation/shared_pages.h"
#include "profiler/op_profile.h"

namespace tandem {

// What the server lets a trainer do at its next operator.
enum class Permit : std::uint32_t {
  kRun = 0,
  kLightOnly = 1,  // Operators that are gated for models with requests wait, up to a bound; others go on.
  kHold = 2,
};

// "run": as answers spell it.
[[nodiscard]] constexpr std::string_view PermitName(Permit permit) {
  switch (permit) {
    case Permit::kRun: return "run";
    case Permit::kLightOnly: return "light_only";
    case Permit::kHold: return "hold";
  }
  return "";
}

// Whether a trainer may begin iterations.
enum class Turn : std::uint32_t {
  kWait = 0,  // At the boundary that it comes to next.
  kGo = 1,    // One after the other.
  kEnd = 2,   // None any more; what it has is to be saved.
};

// What a trainer tells of its turns. A hint, as all that it tells; but only who has read the last order can know its
// number, so that it takes more than a stray write to seem to wait.
struct TurnSigns {
  bool waits = false;      // It has read the last order, and waits by it.
  bool began = false;      // It has read the last order, and goes on by it.
  bool done = false;       // It needs no turn any more.
  MonotonicTime left_at;   // When it came to wait last.
  MonotonicTime began_at;  // When it went on last.
};

// What a trainer tells of itself. A hint: it may be anything, and nothing that must be safe may depend on it.
struct TrainerSigns {
  std::uint64_t ops = 0;              // Operators begun; one that lives counts on.
  bool held = false;                  // It has seen that it is to wait, and waits.
  std::chrono::nanoseconds gated{0};  // So long its operators have waited under kLightOnly.
};

// Words on the pages that only the server writes, and what was found there instead.
struct OverwrittenBoard {
  struct Words {
    std::uint32_t version = 0;
    std::uint32_t orders = 0;

    friend bool operator==(const Words&, const Words&) = default;
  };
  Words found;
  Words given;
};

// An operator that runs: its place, and which it is of all that have run.
struct RunningOp {
  std::size_t place = 0;
  std::uint64_t number = 0;
};

// Operators by their places, and the models for whose requests they are gated.
using GatedPlaces = std::map<std::size_t, ModelSet>;

// Pages that a server and one trainer share: orders one way; signs of life, operators and their times the other. The
// server makes them and hands their descriptor to the trainer it starts. Each word is atomic by itself: what is read of
// several may be of different moments, and of a hostile trainer anything at all, within the bounds that are stated
// here. Orders are given by one thread at a time; the rest is thread-safe.
class TrainerBoard {
 public:
  // So many operators have places of their own; all behind them share the last.
  static constexpr std::size_t kOps = 4096;
  // So many runs of operators are kept.
  static constexpr std::size_t kRecords = 4096;
  // Of an operator's names, longer ones are cut.
  static constexpr std::size_t kKindBytes = 32;
  static constexpr std::size_t kNameBytes = 96;
  static constexpr int kMostThreads = 255;
  // So long an operator waits under kLightOnly at most, or stands still after it has begun: requests that never end
  // must not end training.
  static constexpr std::chrono::milliseconds kMostGated{100};

  // New pages; closed with the object.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Create();
  // Those behind an inherited descriptor, which is taken over. kInvalidArgument when it is none, or of another version.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Attach(int fd);
  TrainerBoard(const TrainerBoard&) = delete;
  TrainerBoard& operator=(const TrainerBoard&) = delete;

  [[nodiscard]] int fd() const { return pages_->fd(); }

  // What lies there; board_page.h.
  struct Page;

  // Server. A trainer that waits looks again. `now` is when the order is given; of kLightOnly, `under_way` are the
  // models that have requests.
  void Set(Permit permit, MonotonicTime now, ModelSet under_way = kEveryModel);
  // How many threads its operators are to use from the next on; 0: as many as it was started with.
  void SetThreads(int threads);
  // The operators that wait under kLightOnly; none at first. One that waits and is not among them any more goes on.
  void SetGated(const GatedPlaces& ops);
  // Whether it may begin iterations; at first it may. These two by one thread at a time, which may be another than that
  // of the orders.
  void SetTurn(Turn turn);
  // Gives the last turn anew if another lies there, and says so.
  bool RestoreTurn();
  [[nodiscard]] TurnSigns TurnTold() const;
  // So many bytes of its lane are its own in its turns; 0, as at first: it has no lane. By whoever orders turns.
  void SetLane(std::uint64_t bytes);
  // Whether it asks for a longer lane, in the middle of an iteration that needs so much; it waits for the answer.
  [[nodiscard]] std::optional<std::uint64_t> LaneNeeded() const;
  void AnswerLane(std::uint64_t bytes);
  // Gives the last orders anew if others lie there: who obeys those would never hear of ours.
  std::optional<OverwrittenBoard> Restore();
  [[nodiscard]] TrainerSigns Signs() const;
  // The operator that runs, if it is one of those that wait under kLightOnly, by the models of the last such order. One
  // that begins at the same time as such an order is given either sees the order or is seen here.
  [[nodiscard]] std::optional<RunningOp> RunningGated() const;
  // Of every operator that was announced.
  [[nodiscard]] std::vector<OpTotals> Totals() const;
  // The runs that ended last, the oldest first, without those that ended before `since`.
  [[nodiscard]] std::vector<OpRecord> Recent(MonotonicTime since) const;
  [[nodiscard]] AcknowledgementTimes Acknowledgements() const;
  // How many orders were given that a trainer may acknowledge: those that change the permit.
  [[nodiscard]] std::uint64_t permits_given() const { return permits_given_.load(std::memory_order_relaxed); }

 private:
  friend class BoardGate;
  TrainerBoard(std::unique_ptr<SharedPages> pages, Page* page) : pages_(std::move(pages)), page_(page) {}
  void Order(Permit permit, int threads);
  // Has whoever waits for a word look again.
  static void Wake(std::atomic<std::uint32_t>& word);

  const std::unique_ptr<SharedPages> pages_;
  Page* const page_;  // There.
  // Orders, where no trainer can change them.
  std::uint32_t given_ = 0;
  std::uint32_t turn_ = 0;
  GatedPlaces gated_;
  ModelSet under_way_ = kEveryModel;
  std::atomic<std::uint64_t> permits_given_{0};
};

}  // namespace tandem
