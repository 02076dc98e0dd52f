#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "colocation/policy.h"
#include "server/jobs/job_need.h"

namespace tandem {
class Arbiter;
class CoreSeats;
class JobTurns;
class MemoryAccount;
class RunLog;
}  // namespace tandem

namespace tandem::jobs {

struct JobOptions {
  std::filesystem::path state;                      // Database, and a folder for each job.
  std::filesystem::path data_root;                  // Where jobs may read data.
  std::vector<std::filesystem::path> repositories;  // Of models; as the model repository has them.
  std::filesystem::path trainer;                    // The program.
  Arbiter* arbiter = nullptr;                       // Rules over trainers; borrowed. Null: nobody does.
  JobTurns* turns = nullptr;                        // Among jobs; borrowed. Null: all run side by side.
  RunLog* runs = nullptr;                           // Of requests beside training; borrowed. Null: nobody tells.
  CoreSeats* seats = nullptr;                       // Of threads of runs, to be looked after; borrowed. Null: none.
  int sign = -1;                                    // As a TrainerLaunch has it.
  TrainerClass rank = TrainerClass::kIdle;          // Of trainers, for the kernel.
  std::vector<int> cores;                           // That trainers may run on; empty: all.
  bool thrifty = false;                             // As a TrainerLaunch has it.
  std::filesystem::path memory_groups;              // Where trainers get control groups; empty: nowhere.
  MemoryAccount* memory = nullptr;                  // Who may have how much; borrowed. Null: nobody counts.
  NeedEstimator need = GuessNeedOf;                 // What a job is promised of it.
  int threads = 1;                                  // Of a trainer at most, unless its job says otherwise.
  int fixed_threads = 1;                            // Of one whose job is deterministic.
  int running = 1;                                  // Jobs at a time.
  int attempts = 5;                                 // Trainers that may fail before their job does.
  std::chrono::milliseconds first_backoff{1'000};   // Doubles until a checkpoint is written, up to the last.
  std::chrono::milliseconds last_backoff{60'000};
  std::chrono::milliseconds hang_limit{300'000};  // A trainer that begins no operator for so long is killed.
};

}  // namespace tandem::jobs
