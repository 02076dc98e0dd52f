#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "runtimes/training/checkpoint/checkpoint_file.h"

namespace tandem::training {

// What became of a checkpoint.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::filesystem::path file;
  Result<CheckpointSize> size;
};

struct LoadedCheckpoint {
  std::int64_t step = 0;
  Checkpoint checkpoint;
};

// The checkpoints of one job in a folder, one file a step; the newest `keep` stay. Writes on a thread of its own, one
// at a time. Used by the training thread.
class Checkpointer {
 public:
  // `saved` is called on the writing thread for each checkpoint, written or failed.
  Checkpointer(std::filesystem::path folder, int keep, std::function<void(const SavedCheckpoint&)> saved);
  // Waits for the one that is being written.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // The newest that can be read; nullopt when there is none. `skipped` is told of each that cannot, newest first.
  [[nodiscard]] std::optional<LoadedCheckpoint> LoadNewest(
      const std::function<void(const std::filesystem::path&, const Error&)>& skipped) const;

  // Begins to write; `checkpoint` must not change any more. Waits for the one before.
  void Save(std::int64_t step, Checkpoint checkpoint) EXCLUDES(mu_);
  // Waits until nothing is being written.
  void Flush() EXCLUDES(mu_);

 private:
  struct Work {
    std::int64_t step = 0;
    Checkpoint checkpoint;
  };

  void Run() EXCLUDES(mu_);
  void RemoveOld() const;
  // What a trainer left that was killed while it wrote.
  void RemovePartial() const;
  [[nodiscard]] std::filesystem::path FileOf(std::int64_t step) const;
  // Newest first.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::filesystem::path>> Files() const;

  // Constant after construction.
  const std::filesystem::path folder_;
  const int keep_;
  const std::function<void(const SavedCheckpoint&)> saved_;

  Mutex mu_;
  CondVar changed_;
  std::optional<Work> waiting_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;
  bool ending_ GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem::training
