#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/interleave.h"
#include "bench/laps.h"
#include "bench/training_server.h"

namespace tandem::bench {

// One side of "beside_training": a server under one policy that serves a model and trains beside it when it is told to.
// Borrows all it is given. Used by one thread.
class PolicySide {
 public:
  struct Spec {
    std::vector<ServedModel> served;      // The first is what is asked for; the last is what is probed with.
    std::vector<TrainedNetwork> trained;  // A job each.
    double quota = 0;                     // Cores; 0: none.
    std::chrono::nanoseconds turn{0};     // How long each takes.
  };
  [[nodiscard]] static Result<std::unique_ptr<PolicySide>> Start(const BenchContext& context, const Spec& spec,
                                                                 const std::string& policy);
  PolicySide(const PolicySide&) = delete;
  PolicySide& operator=(const PolicySide&) = delete;

  // Whether the kernel counts what its threads wait.
  [[nodiscard]] Status RunQueueCounted() const;
  [[nodiscard]] Result<double> CpuPerRequest() const { return server_->CpuPerRequest(spec_.served.front()); }

  // What is asked of it in one turn.
  struct Turn {
    double rate = 0;         // Of requests.
    std::uint64_t seed = 1;  // Of their arrivals.
    bool train = false;
    int probes = 0;  // Requests that are sent one by one afterwards.
  };
  struct Served {
    Lap lap;
    Figures waits;  // wait, wait_run: p99 over the probes, in seconds (run_queue_probe.h); none without probes.
  };
  [[nodiscard]] Result<Served> Serve(const Turn& turn) const;
  // Trains for half of a turn, with nobody asking: that comes out the same more often.
  [[nodiscard]] Result<Lap> Train() const;

 private:
  PolicySide(const BenchContext& context, const Spec& spec, std::unique_ptr<TrainingServer> server)
      : context_(context), spec_(spec), server_(std::move(server)) {}
  [[nodiscard]] Result<loadgen::LatencyHistogram> Load(const Turn& turn) const;
  [[nodiscard]] Result<double> RunQueueWait(const ServedModel& model, const Turn& turn) const;

  const BenchContext& context_;
  const Spec& spec_;
  const std::unique_ptr<TrainingServer> server_;
};

}  // namespace tandem::bench
