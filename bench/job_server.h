#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/server_process.h"
#include "bench/training_side.h"
#include "server/cli/api_client.h"

namespace tandem::bench {

// So many jobs alike.
struct JobMix {
  TrainedNetwork trained;
  int count = 1;
  std::int64_t steps = 0;
};
// The jobs of the field "jobs"; with "steps" where jobs are to end.
[[nodiscard]] Result<std::vector<JobMix>> ParseJobMixes(JsonFields& fields, bool ending);

// A server with jobs that take turns. Borrows the context. Used by one thread.
class JobServer {
 public:
  // Serves what is trained; every job has a trainer at once, as far as there is memory. `flags` beyond that.
  [[nodiscard]] static Result<std::unique_ptr<JobServer>> Start(const BenchContext& context,
                                                                const std::vector<JobMix>& mixes,
                                                                std::vector<std::string> flags);

  // All of them, in order; their numbers.
  [[nodiscard]] Result<std::vector<std::int64_t>> Submit(const std::vector<JobMix>& mixes);
  // Holds these jobs, or lets them on.
  [[nodiscard]] Status Tell(const std::vector<std::int64_t>& jobs, const char* what) const;
  // What GET answers.
  [[nodiscard]] Result<Json::Value> Get(const std::string& path) const { return client_->Get(path); }
  // The states of all jobs by number; kInternal when one has failed.
  [[nodiscard]] Result<std::map<std::int64_t, std::string>> States() const;
  // That the server and its trainers hold, what they share counted once.
  [[nodiscard]] Result<std::uint64_t> HeldBytes() const;

 private:
  explicit JobServer(const BenchContext& context) : context_(context) {}

  const BenchContext& context_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<cli::ApiClient> client_;
};

}  // namespace tandem::bench
