#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "api/base/clock.h"
#include "api/base/op_gate.h"
#include "api/base/result.h"
#include "profiler/op_profile.h"

namespace tandem {

// What the server lets a trainer do at its next operator.
enum class Permit : std::uint32_t {
  kRun = 0,
  kLightOnly = 1,  // Operators that are gated wait, up to a bound; others go on.
  kHold = 2,
};

// What a trainer tells of itself. A hint: it may be anything, and nothing that must be safe may depend on it.
struct TrainerSigns {
  std::uint64_t ops = 0;              // Operators begun; one that lives counts on.
  bool held = false;                  // It has seen that it is to wait, and waits.
  std::chrono::nanoseconds gated{0};  // So long its operators have waited under kLightOnly.
};

// How long orders waited until a trainer saw them, at its next operator.
struct AcknowledgementTimes {
  // Up to 1, 2, 4 … µs, each without those before it; the last has the rest.
  static constexpr std::size_t kBuckets = 22;
  std::array<std::uint64_t, kBuckets> counts{};
  std::chrono::nanoseconds sum{0};

  [[nodiscard]] static std::chrono::microseconds Bound(std::size_t bucket) {
    return std::chrono::microseconds(std::int64_t{1} << bucket);
  }
};

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
  // So long an operator waits under kLightOnly at most: requests that never end must not end training.
  static constexpr std::chrono::milliseconds kMostGated{100};

  // New pages; closed with the object.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Create();
  // Those behind an inherited descriptor, which is taken over. kInvalidArgument when it is none, or of another version.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Attach(int fd);
  ~TrainerBoard();
  TrainerBoard(const TrainerBoard&) = delete;
  TrainerBoard& operator=(const TrainerBoard&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  // What lies there; board_page.h.
  struct Page;

  // Server. A trainer that waits looks again. `now` is when the order is given.
  void Set(Permit permit, MonotonicTime now);
  // How many threads its operators are to use from the next on; 0: as many as it was started with.
  void SetThreads(int threads);
  // The operators that wait under kLightOnly; none at first. One that waits and is not among them any more goes on.
  void SetGated(const std::set<std::size_t>& ops);
  [[nodiscard]] TrainerSigns Signs() const;
  // Of every operator that was announced.
  [[nodiscard]] std::vector<OpTotals> Totals() const;
  // The runs that ended last, the oldest first, without those that ended before `since`.
  [[nodiscard]] std::vector<OpRecord> Recent(MonotonicTime since) const;
  [[nodiscard]] AcknowledgementTimes Acknowledgements() const;

 private:
  friend class BoardGate;
  TrainerBoard(int fd, Page* page) : fd_(fd), page_(page) {}
  void Order(Permit permit, int threads);

  const int fd_;
  Page* const page_;
  // Orders, where no trainer can change them.
  std::uint32_t given_ = 0;
  std::set<std::size_t> gated_;
};

// The trainer's side of a board, as the training runtime asks it. Training thread only.
class BoardGate final : public OpGate {
 public:
  // Told of every change in how many threads operators are to use; 0: as many as at first.
  using UseThreads = std::function<void(int)>;

  // Borrows the board and the clock.
  BoardGate(TrainerBoard& board, const Clock& clock, UseThreads use_threads);

  void Announce(std::span<const OpInfo> ops) override;
  void Begin(std::size_t op) override;
  void End() override;
  void Describe(std::size_t op, const OpWork& work) override;

 private:
  // Obeys orders that are not simply to go on; returns when the operator may begin.
  void Heed(std::uint32_t orders, std::size_t place, MonotonicTime now);
  // Notes that these orders were seen.
  void Acknowledge(std::uint32_t orders, MonotonicTime now);
  void Note(MonotonicTime ended);

  TrainerBoard::Page& page_;
  const Clock& clock_;
  const UseThreads use_threads_;
  std::uint32_t open_;  // Orders that are to go on, and have been obeyed.
  std::uint32_t seen_;  // The last that were acknowledged.
  int threads_ = 0;
  std::optional<std::size_t> running_;  // The place of the operator that runs.
  MonotonicTime began_;
};

}  // namespace tandem
