#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "bench/context.h"
#include "bench/cpu_group.h"
#include "bench/server_process.h"
#include "bench/training_side.h"
#include "loadgen/http_request.h"
#include "loadgen/server_metrics.h"
#include "server/cli/api_client.h"

namespace tandem::bench {

struct TrainingServerSpec {
  std::vector<std::string> models;     // Served, as scenarios name them.
  std::vector<TrainedNetwork> trains;  // A job each.
  std::string policy;                  // --colocation.
  double quota = 0;                    // Cores' worth of CPU time for it and its trainers; 0: no limit.
};

// What the operators of one job's trainer have come to, by name; several may share one.
struct OpCount {
  int ops = 0;
  double runs = 0;     // Of all of them.
  double typical = 0;  // What one run of each takes, added up, in any unit that all share.
};
using OpCounts = std::map<std::string, OpCount>;
// Steps between two moments, of an operator's run as much as it typically takes of a step, as `after` tells: so a step
// that has begun counts for what is done of it. Every operator runs once a step. Pure.
[[nodiscard]] double StepsBetween(const OpCounts& before, const OpCounts& after);

// What a server and its control group have counted at one moment.
struct TrainingMarks {
  MonotonicTime at;
  std::vector<OpCounts> ops;  // Of the jobs, as in the spec.
  double cpu = 0;             // Seconds of the server alone.
  double periods = 0;
  double throttled = 0;
  loadgen::CountsUpTo acknowledgements;
  std::optional<double> missed_by_training;  // Requests; empty where the server does not tell.
};

// What became of the time between two moments.
struct TrainingSpan {
  double seconds = 0;
  std::vector<double> rates;  // Steps a second of the jobs.
  double cores = 0;           // That the server alone used.
  double periods = 0;         // Of the quota; none without one.
  double throttled = 0;       // Of them, those whose quota was used up.
  // Seconds until trainers saw that they may go on or not, the p99: the upper bound of its bucket. Empty when no
  // trainer was told anything.
  std::optional<double> acknowledged;
  std::optional<double> missed_by_training;
};
[[nodiscard]] TrainingSpan Between(const TrainingMarks& before, const TrainingMarks& after);

// A request for a model, with inputs that are the same for every server.
struct ServedModel {
  std::string model;
  std::vector<Tensor> inputs;
};
[[nodiscard]] Result<ServedModel> PrepareModel(BenchContext& context, const std::string& model);

// A server under one policy, whose jobs wait until they are wanted. Borrows the context. Used by one thread.
class TrainingServer {
 public:
  // Returns when every job has made its first steps and waits.
  [[nodiscard]] static Result<std::unique_ptr<TrainingServer>> Start(const BenchContext& context,
                                                                     const TrainingServerSpec& spec);
  TrainingServer(const TrainingServer&) = delete;
  TrainingServer& operator=(const TrainingServer&) = delete;

  [[nodiscard]] int port() const { return server_->http_port(); }
  [[nodiscard]] pid_t pid() const { return server_->pid(); }

  [[nodiscard]] Status Resume() const { return Tell("resume"); }
  [[nodiscard]] Status Pause() const { return Tell("pause"); }
  [[nodiscard]] Result<TrainingMarks> Look() const;

  // With an SLO when there is one.
  [[nodiscard]] Result<loadgen::HttpRequest> Request(const ServedModel& model,
                                                     std::optional<std::chrono::nanoseconds> slo = {}) const;
  // CPU seconds of the server alone for one request, one after the other for a window of the pace, or for some seconds
  // if that is longer.
  [[nodiscard]] Result<double> CpuPerRequest(const ServedModel& model) const;

 private:
  explicit TrainingServer(const BenchContext& context) : context_(context) {}

  Status Submit(const TrainedNetwork& trained);
  // What the operators of that job's trainer have come to.
  [[nodiscard]] Result<OpCounts> CountOps(const std::string& job) const;
  [[nodiscard]] Result<double> StepsOf(const std::string& job) const;
  [[nodiscard]] Result<loadgen::ServerMetrics> Metrics() const;
  // The same to all jobs.
  Status Tell(const char* what) const;

  const BenchContext& context_;
  std::unique_ptr<CpuGroup> group_;  // Outlives what is in it.
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<cli::ApiClient> client_;
  std::vector<std::string> jobs_;  // Their ids.
};

}  // namespace tandem::bench
