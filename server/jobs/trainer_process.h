#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/wire/trainer_event.h"
#include "colocation/policy.h"
#include "colocation/trainer_board.h"

namespace tandem::jobs {

struct TrainerLaunch {
  std::filesystem::path program;
  std::filesystem::path run_file;
  std::filesystem::path folder;  // Of the job: the trainer's working directory, with its log.
  std::optional<std::uint64_t> memory;
  int memory_group = -1;     // The door of a MemoryGroup; borrowed.
  int lane = -1;             // Pages of a lane that it may use; borrowed. -1: it has none.
  bool takes_turns = false;  // It waits for its first.
  int sign = -1;             // The descriptor of a ServingSign that it is shown; borrowed. -1: none.
  TrainerClass rank = TrainerClass::kIdle;
  bool thrifty = false;    // Threads that wait for one another sleep soon: what they burn would be missing elsewhere.
  std::vector<int> cores;  // That it may run on; empty: all that this process may.
};

// How a trainer ended, in words where it matters.
struct TrainerExit {
  int code = 0;  // When no signal ended it.
  int signal = 0;

  [[nodiscard]] bool clean() const { return code == 0 && signal == 0; }
  [[nodiscard]] std::string Words() const;
};

// A running tandem-trainer: a process with a cleared environment, a group of its own, no way to new privileges, (unless
// it is told otherwise) behind everybody else for the CPU, and first to go when the machine runs out of memory. It ends
// when the thread that started it does, and with this object at the latest. Used by that thread.
class TrainerProcess {
 public:
  // kInternal when it cannot be started.
  [[nodiscard]] static Result<std::unique_ptr<TrainerProcess>> Start(const TrainerLaunch& launch);
  // Kills it if it still runs, and waits for its end.
  ~TrainerProcess();
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  // No other process has this number while the object lives: it is reaped when that goes.
  [[nodiscard]] int pid() const { return pid_; }
  // Stands for this process and never for another; -1 where the kernel has no such descriptors.
  [[nodiscard]] int pidfd() const { return pidfd_; }
  [[nodiscard]] TrainerBoard& board() { return *board_; }
  // Whether it is of the kernel's idle class, as far as that was asked for: not where it is forbidden.
  [[nodiscard]] bool yields() const { return yields_; }
  // Why it cannot be kept to its cores, and runs on all that this process may; empty when it is.
  [[nodiscard]] const std::string& unpinned() const { return unpinned_; }
  // What it rings when it waits for its turn; -1 when it takes none.
  [[nodiscard]] int bell() const { return bell_; }
  // Readable when events wait to be read, or nobody can write any more.
  [[nodiscard]] int events_fd() const { return events_; }

  // What it has told since the last call; does not wait. Lines that are no events are passed over and counted.
  [[nodiscard]] std::vector<TrainerEvent> ReadEvents();
  // Whether there is nothing more to be read, ever.
  [[nodiscard]] bool silent() const { return silent_; }
  [[nodiscard]] std::uint64_t bad_lines() const { return bad_lines_; }

  // Asks it to write a checkpoint and end; one that waits at its board does so when it goes on.
  void Interrupt();
  // False: it runs, and may not be signalled.
  bool Kill();
  // Kills it if it still runs, and returns when it has ended.
  void End();
  // Stops it wherever it is, or lets it on.
  void Stop(bool stop);
  // How it ended; nullopt while it runs. Does not wait.
  [[nodiscard]] std::optional<TrainerExit> Poll();
  // Bytes that it holds in memory, with what is mapped from files; 0 when that cannot be told.
  [[nodiscard]] std::uint64_t ResidentBytes() const;
  // Of that what no file stands behind.
  [[nodiscard]] std::uint64_t AnonymousBytes() const;
  // The most that it ever held.
  [[nodiscard]] std::uint64_t PeakResidentBytes() const;
  // CPU time that it has used, with all of its threads; 0 when that cannot be told.
  [[nodiscard]] std::chrono::nanoseconds CpuTime() const;

 private:
  TrainerProcess(int pid, int pidfd, int events, int bell, bool yields, std::string unpinned,
                 std::unique_ptr<TrainerBoard> board)
      : pid_(pid),
        pidfd_(pidfd),
        events_(events),
        bell_(bell),
        yields_(yields),
        unpinned_(std::move(unpinned)),
        board_(std::move(board)) {}
  void TakeLines(std::vector<TrainerEvent>& events);
  // How it ended, once it has. Waits for that, unless `options` has WNOHANG.
  [[nodiscard]] std::optional<TrainerExit> SeeEnd(int options) const;

  const int pid_;
  const int pidfd_;
  const int events_;
  const int bell_;
  const bool yields_;
  const std::string unpinned_;
  const std::unique_ptr<TrainerBoard> board_;
  std::optional<TrainerExit> exit_;
  std::string unread_;     // The beginning of a line.
  bool skipping_ = false;  // In a line that is too long.
  bool silent_ = false;
  std::uint64_t bad_lines_ = 0;
};

// The end of a trainer's log, for people; in whole lines, unless there is none.
[[nodiscard]] std::string LogTail(const std::filesystem::path& folder, std::size_t most_bytes);
[[nodiscard]] inline std::filesystem::path LogFile(const std::filesystem::path& folder) {
  return folder / "trainer.log";
}

}  // namespace tandem::jobs
