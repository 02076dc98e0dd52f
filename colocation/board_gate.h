#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "api/base/clock.h"
#include "api/base/lane_grant.h"
#include "api/base/op_gate.h"
#include "colocation/serving_sign.h"
#include "colocation/trainer_board.h"

namespace tandem {

// The trainer's side of a board, as the training runtime asks it. Training thread only.
class BoardGate final : public OpGate, public LaneGrant {
 public:
  // Told of every change in how many threads operators are to use, by order (0: as many as at first) and as the sign
  // shows what runs of the server have taken.
  using UseThreads = std::function<void(int ordered, int taken)>;

  // Borrows the board, the clock and the sign; null: there is none to see. `bell` is a descriptor that is rung when it
  // comes to wait for its turn, or needs none any more; -1: nobody listens.
  BoardGate(TrainerBoard& board, const Clock& clock, UseThreads use_threads, const ServingSign* sign = nullptr,
            int bell = -1);

  void Announce(std::span<const OpInfo> ops) override;
  void Begin(std::size_t op) override;
  void End() override;
  void Describe(std::size_t op, const OpWork& work) override;
  bool BeginIteration() override;
  void EndIterations() override;
  [[nodiscard]] std::uint64_t length() const override;
  [[nodiscard]] std::uint64_t Grow(std::uint64_t needed) override;

 private:
  // Obeys orders that are not simply to go on; returns when the operator may begin.
  // `before` is the operator that ran until now, if one did.
  void Heed(std::uint32_t orders, std::optional<std::size_t> before, MonotonicTime now);
  // The same between iterations, if that is the order: who waits for its turn computes nothing, and begins none before
  // it has it.
  void ObeyAtBoundary(Permit permit, MonotonicTime now);
  // Notes how long the last order took to be obeyed.
  void Acknowledge(MonotonicTime now);
  [[nodiscard]] bool Gated(std::size_t place) const;
  void Note(MonotonicTime ended);
  void Ring() const;

  TrainerBoard::Page& page_;
  const Clock& clock_;
  const UseThreads use_threads_;
  const ServingSign* const sign_;
  const int bell_;
  std::uint32_t open_ = 0;              // Orders that are to go on, and have been obeyed.
  std::uint32_t seen_ = 0;              // The last that were looked at.
  int threads_ = 0;                     // That were ordered.
  int taken_ = 0;                       // By runs of the server, as the sign showed it last.
  std::uint64_t begun_ = 0;             // Operators, so far.
  std::optional<std::size_t> running_;  // The place of the operator that runs.
  MonotonicTime began_;
};

}  // namespace tandem
