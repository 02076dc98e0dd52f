#include "profiler/interference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/base/duration.h"

namespace tandem {
namespace {

// What was seen of a pairing so long ago, or so seldom, is forgotten.
constexpr double kForgotten = 0.5;
// One run that was interrupted for a second must not speak for a thousand.
constexpr double kLargestRatio = 10;

}  // namespace

void InterferenceMeter::Sums::Add(double value) {
  runs += 1;
  sum += value;
  squares += value * value;
}

void InterferenceMeter::Sums::Scale(double by) {
  runs *= by;
  sum *= by;
  squares *= by;
}

void InterferenceMeter::Observe(const RunSample& run, std::span<const OpRecord> ops) {
  const auto least = std::chrono::duration<double, std::nano>(run.ended - run.began) * kLeastOverlap;
  std::map<std::uint32_t, std::chrono::nanoseconds> overlaps;
  // They end in order, so those that ended before it are at the front.
  const auto first = std::ranges::lower_bound(ops, run.began, {}, [](const OpRecord& op) { return op.ended(); });
  for (auto op = first; op != ops.end() && op->began < run.ended; ++op) {
    overlaps[op->op] += std::min(op->ended(), run.ended) - std::max(op->began, run.began);
  }
  const double value = std::log(std::clamp(run.ratio, 1 / kLargestRatio, kLargestRatio));
  Model& model = models_[run.model];
  model.all.Add(value);
  for (const auto& [op, overlap] : overlaps) {
    if (overlap >= least) model.beside[op].Add(value);
  }
}

void InterferenceMeter::Age(std::chrono::nanoseconds by) {
  const double left = std::exp2(-Seconds(by) / Seconds(kHalfLife));
  for (auto& [name, model] : models_) {
    model.all.Scale(left);
    for (auto& [op, sums] : model.beside) sums.Scale(left);
    std::erase_if(model.beside, [](const auto& entry) { return entry.second.runs < kForgotten; });
  }
  std::erase_if(models_, [](const auto& entry) { return entry.second.all.runs < kForgotten; });
}

std::optional<Interference> InterferenceMeter::Pairing(const std::string& name, const Sums& all, const Sums& beside) {
  const double other_runs = all.runs - beside.runs;
  constexpr double kFewest = OpClassifier::kStillEnough.runs;
  if (beside.runs < kFewest || other_runs < kFewest) return std::nullopt;
  const double mean = beside.sum / beside.runs;
  const double other_mean = (all.sum - beside.sum) / other_runs;
  const double variance = std::max(0.0, beside.squares / beside.runs - mean * mean);
  const double other_variance = std::max(0.0, (all.squares - beside.squares) / other_runs - other_mean * other_mean);
  const double ratio = std::exp(mean - other_mean);
  return Interference{.model = name,
                      .ratio = ratio,
                      .error = ratio * std::sqrt(variance / beside.runs + other_variance / other_runs),
                      .runs = beside.runs};
}

std::vector<Interference> InterferenceMeter::Of(std::uint32_t op) const {
  std::vector<Interference> known;
  for (const auto& [name, model] : models_) {
    const auto beside = model.beside.find(op);
    if (beside == model.beside.end()) continue;
    if (auto pairing = Pairing(name, model.all, beside->second)) known.push_back(*std::move(pairing));
  }
  return known;
}

}  // namespace tandem
