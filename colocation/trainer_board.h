#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "api/base/op_gate.h"
#include "api/base/result.h"

namespace tandem {

// What the server lets a trainer do.
enum class Permit : std::uint32_t { kRun = 0, kHold = 1 };

// What a trainer tells of itself. A hint: it may be anything, and nothing that must be safe may depend on it.
struct TrainerSigns {
  std::uint64_t ops = 0;  // Operators begun; one that lives counts on.
  bool held = false;      // It has seen that it is to wait, and waits.
};

// A page that a server and one trainer share: orders one way, signs of life the other. The server makes it and hands
// its descriptor to the trainer it starts. Orders are given by one thread at a time; the rest is thread-safe.
class TrainerBoard {
 public:
  // A new page; closed with the object.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Create();
  // The page behind an inherited descriptor, which is taken over. kInvalidArgument when it is none, or of another
  // version.
  [[nodiscard]] static Result<std::unique_ptr<TrainerBoard>> Attach(int fd);
  ~TrainerBoard();
  TrainerBoard(const TrainerBoard&) = delete;
  TrainerBoard& operator=(const TrainerBoard&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  // Server. A trainer that waits and may run is woken.
  void Set(Permit permit);
  [[nodiscard]] TrainerSigns Signs() const;

  // Trainer: asked before every operator. One load when it may run.
  void Pass();

 private:
  struct Page;
  TrainerBoard(int fd, Page* page) : fd_(fd), page_(page) {}

  const int fd_;
  Page* const page_;
};

// The trainer's side of a board, as the training runtime asks it.
class BoardGate final : public OpGate {
 public:
  // Borrows the board.
  explicit BoardGate(TrainerBoard& board) : board_(board) {}
  void Pass() override { board_.Pass(); }

 private:
  TrainerBoard& board_;
};

}  // namespace tandem
