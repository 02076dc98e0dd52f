#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "loadgen/server_metrics.h"
#include "loadgen/target.h"
#include "loadgen/tls_client.h"
#include "loadgen/training_series.h"

namespace tandem::loadgen {

// Where a server's metrics are read.
struct MetricsSource {
  Target target;  // http or https; GET /metrics.
  TlsClientOptions tls;
  std::string token;  // Bearer token; empty: none.
};

// One reading on a connection of its own; blocks, at most for `timeout`. An answer other than 200 is kUnavailable.
[[nodiscard]] Result<ServerMetrics> ReadServerMetrics(const MetricsSource& source, std::chrono::nanoseconds timeout);

// Reads how training goes on beside a run, once an interval, on a thread of its own at low priority, so that sends are
// not disturbed; and once more at the end. A reading that fails is left out. Made before the run and finished after it
// by one thread; HeldLately() is thread-safe.
class TrainingWatch {
 public:
  TrainingWatch(MetricsSource source, std::chrono::nanoseconds interval);
  ~TrainingWatch();
  TrainingWatch(const TrainingWatch&) = delete;
  TrainingWatch& operator=(const TrainingWatch&) = delete;

  // As TrainingSeries::HeldLately().
  [[nodiscard]] std::optional<double> HeldLately() const;
  // Ends the watch; what it has seen.
  [[nodiscard]] TrainingSeries Finish();

 private:
  void Watch();
  void Stop();

  // Constant after construction.
  const MetricsSource source_;
  const std::chrono::nanoseconds interval_;

  mutable Mutex mu_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mu_) = false;
  TrainingSeries series_ GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses the above.
};

}  // namespace tandem::loadgen
