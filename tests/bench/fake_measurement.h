#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/context.h"
#include "bench/measurement.h"

namespace tandem::bench {

// Kind "fake": series a and b, with the samples that the file gives under "samples_a"; b has twice as much of each.
// With "fails" b did not run, for that reason. Remembers what was wanted of the last run, and the windows of all.
class FakeMeasurement final : public Measurement {
 public:
  FakeMeasurement(double first, std::string fails) : first_(first), fails_(std::move(fails)) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"a", "b"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override {
    last_wanted() = wanted;
    windows().push_back(context.pace.window);
    ++runs();
    SeriesMap series;
    series["a"].samples = {first_, first_ + 1, first_ + 2};
    for (const double sample : series["a"].samples) series["b"].samples.push_back(2 * sample);
    if (!fails_.empty()) series["b"] = {.samples = {}, .not_run = fails_};
    return series;
  }

  static std::set<std::string>& last_wanted() {
    static std::set<std::string> wanted;
    return wanted;
  }
  static std::vector<std::chrono::nanoseconds>& windows() {
    static std::vector<std::chrono::nanoseconds> all;
    return all;
  }
  static int& runs() {
    static int count = 0;
    return count;
  }

 private:
  const double first_;
  const std::string fails_;
};

inline MeasurementKinds FakeKinds() {
  return {{"fake", [](JsonFields& fields, const std::vector<PeerSpec>& peers) -> Result<std::unique_ptr<Measurement>> {
             TANDEM_ASSIGN(const double first, fields.Number("first", 0, 1e9));
             TANDEM_ASSIGN(std::string fails, fields.TextOr("fails", ""));
             TANDEM_ASSIGN(const std::string peer, fields.TextOr("peer", ""));
             if (!peer.empty()) TANDEM_TRY(FindPeer(peers, peer, fields.At("peer")));
             return std::make_unique<FakeMeasurement>(first, std::move(fails));
           }}};
}

}  // namespace tandem::bench
