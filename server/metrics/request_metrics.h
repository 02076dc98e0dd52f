#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "api/base/mutex.h"

namespace prometheus {
class Registry;
class Counter;
class Histogram;
template <typename T>
class Family;
}  // namespace prometheus

namespace tandem {

enum class RequestOutcome { kSuccess, kRejected, kExpired, kCancelled, kInvalid, kError };
inline constexpr int kRequestOutcomeCount = 6;
[[nodiscard]] std::string_view RequestOutcomeName(RequestOutcome outcome);

// What became of a request's SLO. kNone: it had none, or its own client's doing kept it from being met.
enum class SloVerdict { kNone, kMet, kMissed, kRejected };

// Who is to blame for an SLO that was missed, or a request that was rejected: training, if it would have been in time
// without; else something else, most often the load. kUnknown: training, or the model has become slower by itself since
// it last ran without. kNone: it was neither.
enum class MissCause : std::uint8_t { kNone, kTraining, kOther, kUnknown };
[[nodiscard]] std::string_view MissCauseName(MissCause cause);

// One answered request.
struct RequestRecord {
  std::string_view model;  // Empty when the request named no model that is served.
  RequestOutcome outcome = RequestOutcome::kSuccess;
  std::chrono::nanoseconds latency{0};
  SloVerdict slo = SloVerdict::kNone;
  MissCause cause = MissCause::kNone;
};

// Our own per-request metrics: the latency histogram by outcome, SLO counters, batch sizes, and how well runs are
// predicted. Thread-safe. Labels come only from models that are served, so that strangers cannot grow the registry;
// those of models that have gone go, too.
class RequestMetrics {
 public:
  // Borrows the registry, which must outlive it.
  explicit RequestMetrics(prometheus::Registry& registry);
  ~RequestMetrics();

  void Record(const RequestRecord& record);
  // A run over so many elements; `expected` is what it was to take, if that was known, and `took` what it did.
  void RecordRun(std::string_view model, std::int64_t elements, std::optional<std::chrono::nanoseconds> expected,
                 std::chrono::nanoseconds took);
  // Drops what was counted for models that are not among these. A request of such a model that is still under way
  // brings it back until the next time.
  void Retain(const std::set<std::string, std::less<>>& served) EXCLUDES(mu_);

 private:
  struct Families;
  struct Model;
  // Shared: whoever counts keeps the metrics that Retain() drops meanwhile.
  std::shared_ptr<Model> Find(std::string_view model) EXCLUDES(mu_);

  const std::unique_ptr<Families> families_;
  Mutex mu_;
  std::map<std::string, std::shared_ptr<Model>, std::less<>> models_ GUARDED_BY(mu_);
};

}  // namespace tandem
