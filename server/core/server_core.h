#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "colocation/arbiter.h"
#include "memory/shared_regions.h"
#include "profiler/flight_recorder.h"
#include "server/core/bulk_thread.h"
#include "server/core/settings.h"
#include "server/infer/inference_service.h"
#include "server/repository/model_repository.h"

namespace tandem::jobs {
class JobService;
}

namespace tandem {
class JobTurns;
class MemoryAccount;

// Names what this server is; the same over every front end.
struct ServerInfo {
  std::string name = "tandem";
  std::string version;
  std::vector<std::string> extensions = {"classification",
                                         "model_repository",
                                         "model_repository(unload_dependents)",
                                         "model_configuration",
                                         "system_shared_memory",
                                         "cuda_shared_memory",
                                         "binary_tensor_data",
                                         "parameters",
                                         "statistics",
                                         "trace",
                                         "logging"};
};

// What the front ends call into: references to the parts that make up the server, and its readiness. Built by the
// lifecycle, which owns the parts and outlives every front end. The parts are thread-safe.
struct ServerCore {
  const Clock& clock;
  const ServerInfo& info;
  repository::ModelRepository& repository;
  InferenceService& inference;
  SharedRegions& regions;
  LogSettings& log_settings;
  TraceSettings& trace_settings;
  BulkThread& bulk;
  // Set once start-up loading is done, cleared when draining begins.
  std::atomic<bool>& accepting;
  const bool strict_readiness;
  const Arbiter& arbiter;
  // Null when there is no training; then training_off says why.
  jobs::JobService* jobs = nullptr;
  std::string training_off;
  // May be null or off: then nothing is recorded.
  const FlightRecorder* recorder = nullptr;
  // Null: nobody counts.
  const MemoryAccount* memory = nullptr;
  // Null when there is no training.
  JobTurns* turns = nullptr;

  // What /v2/health/ready and ServerReady answer.
  [[nodiscard]] bool Ready() const {
    return accepting.load(std::memory_order_acquire) && (!strict_readiness || repository.AllReady());
  }
};

}  // namespace tandem
