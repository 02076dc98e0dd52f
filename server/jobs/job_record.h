#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/jobs/job_state.h"

// What the job store holds, as plain values. Times are wall time in milliseconds since 1970.

namespace tandem::jobs {

using JobId = std::int64_t;

// How far a job has come.
struct JobProgress {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;  // 0: not known yet.
  std::int64_t epoch = 0;
  std::optional<double> loss;
  std::string metric_name;  // "accuracy", "eval_loss"; empty: there is no evaluation.
  std::optional<double> metric;
  std::optional<double> best_metric;

  friend bool operator==(const JobProgress&, const JobProgress&) = default;
};

struct NewJob {
  std::string name;
  std::string owner = "default";  // The name of the token that submitted it.
  std::string idempotency_key;    // Empty: none.
  std::string spec;               // The job's canonical JSON.
  std::string model;
  std::string model_version;  // Empty: told when it is admitted.
  int priority = 0;
};

struct JobRecord {
  JobId id = 0;
  JobState state = JobState::kQueued;
  std::string name;
  std::string owner;
  std::string idempotency_key;
  std::string spec;
  std::string model;
  std::string model_version;  // That it began from.
  int priority = 0;
  std::int64_t created_at = 0;
  std::optional<std::int64_t> started_at;  // The first time.
  std::optional<std::int64_t> ended_at;
  JobProgress progress;
  std::int64_t attempts = 0;  // Trainers that were started.
  std::int64_t retries = 0;   // Trainers that failed and were followed by another attempt.
  std::optional<std::int64_t> next_attempt_at;
  std::string reason;  // Of its state, in words: why it failed, why it is tried again.
  std::string published_version;
  bool publish_due = false;  // It has succeeded, is to be published by itself, and that was not tried to its end yet.
  // Of one that has succeeded: what it came to in its evaluation before its first step, if it was measured.
  std::optional<double> baseline;
  // That each trainer of a deterministic job has whose description names no number: as many as when it was first
  // admitted.
  std::optional<int> fixed_threads;
  std::string memory;  // What its trainer takes, estimated and measured, as JSON; empty: nothing is known.
};

// What a transition changes besides the state; what is not given stays.
struct TransitionFields {
  std::string reason;  // Replaces the one before, also when it is empty.
  std::optional<std::string> model_version;
  std::optional<std::int64_t> next_attempt_at;  // Only with kRetry and kRequeue; each other action forgets it.
  std::optional<JobProgress> progress;
  bool publish_due = false;          // Only with kSucceed.
  std::optional<double> baseline;    // Only with kSucceed.
  std::optional<int> fixed_threads;  // A job that has some keeps them.
};

struct JobQuery {
  std::vector<JobState> states;      // Empty: all.
  std::optional<std::string> owner;  // Else all.
  bool publish_due = false;          // Only those.
  JobId before = 0;                  // Only jobs that are older than this one; 0: from the newest on.
  int limit = 50;                    // 1 to kMaxPage.

  static constexpr int kMaxPage = 1000;
};

struct JobPage {
  std::vector<JobRecord> jobs;  // Newest first.
  JobId next = 0;               // `before` of the next page; 0: this is the last.
};

struct JobEvent {
  std::int64_t sequence = 0;  // Ascends over the whole store, and is never given twice.
  JobId job = 0;
  std::int64_t time = 0;
  std::string kind;  // "state", "log", "checkpoint", …
  std::string body;  // JSON.

  friend bool operator==(const JobEvent&, const JobEvent&) = default;
};

struct SeriesPoint {
  std::int64_t step = 0;
  double value = 0;

  friend bool operator==(const SeriesPoint&, const SeriesPoint&) = default;
};

struct CheckpointRecord {
  JobId job = 0;
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  std::string checksum;
  std::int64_t time = 0;
  bool good = true;

  friend bool operator==(const CheckpointRecord&, const CheckpointRecord&) = default;
};

}  // namespace tandem::jobs
