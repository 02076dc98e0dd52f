#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/base/result.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "bench/json_fields.h"
#include "bench/training/turns.h"
#include "loadgen/socket_address.h"

namespace tandem::bench {

// A network and the size of its batches, as a scenario names them.
struct TrainedNetwork {
  std::string network;
  int batch = 1;
};
[[nodiscard]] Result<TrainedNetwork> ParseTrainedNetwork(JsonFields& fields);

// Writes the model and examples of a network (bench/training/network_job.h) into the work folder the first time; the
// folder.
[[nodiscard]] Result<std::filesystem::path> SetupFolder(const BenchContext& context, const std::string& network);

// tandem-bench-training as one side of a comparison: trains when it has its turn. Used by one thread, which must live
// as long as the process should.
class TrainingSide {
 public:
  // "tandem", "tandem_gated", "libtorch" or "libtorch_heap". Returns when the first step is done.
  [[nodiscard]] static Result<std::unique_ptr<TrainingSide>> Start(const BenchContext& context, const std::string& side,
                                                                   const TrainedNetwork& trained, int checkpoint_steps);

  // Trains for `seconds` or `steps`, whichever is over first.
  [[nodiscard]] Result<Turn> Take(double seconds, std::int64_t steps) const;
  // The most that it has held so far.
  [[nodiscard]] Result<std::uint64_t> PeakBytes() const { return process_->MemoryBytes("VmHWM"); }

 private:
  TrainingSide(loadgen::Socket socket, std::unique_ptr<ChildProcess> process)
      : socket_(std::move(socket)), process_(std::move(process)) {}

  const loadgen::Socket socket_;
  const std::unique_ptr<ChildProcess> process_;
};

}  // namespace tandem::bench
