#include "server/trace/batch_runs.h"

namespace tandem::trace {
namespace {

class RunReader {
 public:
  explicit RunReader(const NameTable& names) : names_(names) {}

  void Read(const FlightRecord& record) {
    if (const auto began = As<BatchBegan>(record)) return Began(*began);
    if (const auto ended = As<BatchEnded>(record)) return Ended(*ended);
    if (const auto joined = As<RequestJoined>(record)) {
      const auto run = runs_.find(joined->batch);
      if (run != runs_.end() && run->second.worker == kFrontEnd) at_front_end_[joined->request] = joined->batch;
    } else if (const auto answered = As<RequestAnswered>(record)) {
      const auto batch = at_front_end_.find(answered->request);
      if (batch == at_front_end_.end()) return;
      BatchRun& run = runs_.at(batch->second);
      if (!run.ended) run.ended = answered->at;
      at_front_end_.erase(batch);
    }
  }

  BatchRuns Take() {
    std::map<std::uint16_t, MonotonicTime> next;  // Of each worker, the beginning of what came after.
    for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
      BatchRun& one = run->second;
      if (one.worker == kFrontEnd) continue;
      const auto after = next.find(one.worker);
      if (!one.ended && after != next.end()) one.ended = after->second;
      next[one.worker] = one.began;
    }
    return std::move(runs_);
  }

 private:
  void Began(const BatchBegan& began) {
    runs_[began.batch] = {.batch = began.batch,
                          .model = names_.NameOf(began.model),
                          .version = began.version,
                          .elements = began.elements,
                          .requests = began.requests,
                          .worker = began.worker,
                          .narrow = began.narrow,
                          .exclusive = began.exclusive,
                          .began = began.at,
                          .ended = {},
                          .error = {},
                          .expected = began.expected};
  }
  void Ended(const BatchEnded& ended) {
    auto found = runs_.find(ended.batch);
    if (found == runs_.end()) {
      if (!ended.began) return;
      found = runs_
                  .emplace(ended.batch, BatchRun{.batch = ended.batch,
                                                 .model = names_.NameOf(ended.model),
                                                 .version = ended.version,
                                                 .elements = ended.elements,
                                                 .requests = ended.requests,
                                                 .worker = ended.worker,
                                                 .narrow = ended.narrow,
                                                 .exclusive = ended.exclusive,
                                                 .began = *ended.began,
                                                 .ended = {},
                                                 .error = {},
                                                 .expected = {}})
                  .first;
    }
    found->second.ended = ended.at;
    found->second.error = ended.error;
  }

  const NameTable& names_;
  BatchRuns runs_;
  std::map<std::uint64_t, std::uint64_t> at_front_end_;  // By request: its batch, as long as it is not answered.
};

}  // namespace

BatchRuns ReadBatchRuns(const FlightCopy& copy) {
  RunReader reader(*copy.names);
  for (const FlightRecord& record : copy.requests) reader.Read(record);
  return reader.Take();
}

}  // namespace tandem::trace
