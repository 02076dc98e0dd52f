#pragma once

#include <cstdint>
#include <vector>

#include "colocation/simulation/request_line.h"
#include "colocation/simulation/result.h"

namespace tandem::simulation {

// Counts what becomes of one model's requests that come from a moment on. Used by one thread.
class RequestTally {
 public:
  // So many are expected: room for them is made at once.
  RequestTally(Time from, double expected);

  void Offered(const Request& request) { result_.offered += Counts(request) ? 1 : 0; }
  void Rejected(const Request& request);
  void Answered(const Request& request, Time at);
  // Those that were neither are told here, when all is over.
  void Unfinished(const Request& request, Time end);

  [[nodiscard]] ModelResult Finish();

 private:
  [[nodiscard]] bool Counts(const Request& request) const { return request.arrival >= from_; }

  const Time from_;
  std::vector<std::int64_t> latencies_;
  ModelResult result_;
};

}  // namespace tandem::simulation
