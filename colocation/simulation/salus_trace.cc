#include "colocation/simulation/salus_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>
#include <vector>

#include "colocation/simulation/random_source.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

struct Network {
  const char* name;
  std::uint64_t parameters;
};

// From the networks' own publications.
constexpr Network kNetworks[] = {
    {"alexnet", 61'000'000},   {"googlenet", 7'000'000}, {"inception3", 24'000'000}, {"inception4", 43'000'000},
    {"overfeat", 146'000'000}, {"resnet50", 25'600'000}, {"resnet101", 44'500'000},  {"resnet152", 60'200'000},
    {"vgg11", 133'000'000},    {"vgg16", 138'000'000},   {"vgg19", 144'000'000},
};

// Below which so large a part of the standard normal distribution lies.
double NormalQuantile(double part) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::numbers::sqrt2) / 2 < part ? low : high) = middle;
  }
  return low;
}

// The quantiles of the distribution rather than draws from it, so that every seed has the same jobs in another order;
// their mean is as told.
std::vector<double> Durations(const SalusTrace& trace) {
  std::vector<double> times(trace.jobs);
  double sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(times.size());
    times[i] = std::exp(trace.spread * NormalQuantile(part));
    sum += times[i];
  }
  const double scale = static_cast<double>(trace.mean.count()) * static_cast<double>(times.size()) / sum;
  for (double& time : times) time *= scale;
  return times;
}

}  // namespace

JobMix MakeSalusMix(const SalusTrace& trace) {
  RandomSource random(trace.seed, 0);
  const auto below = [&random](std::size_t count) {
    return std::min(static_cast<std::size_t>(random.Uniform() * static_cast<double>(count)), count - 1);
  };
  std::vector<double> durations = Durations(trace);
  for (std::size_t i = durations.size(); i > 1; --i) std::swap(durations[i - 1], durations[below(i)]);

  const auto arrivals = static_cast<double>(std::chrono::nanoseconds(trace.arrivals).count());
  const auto least = static_cast<double>(trace.least_ephemeral);
  const double range = std::log(static_cast<double>(trace.most_ephemeral) / least);
  JobMix mix{.budget = trace.budget};
  for (const double duration : durations) {
    const Network& network = kNetworks[below(std::size(kNetworks))];
    SimulatedJob job{.name = network.name, .iteration = 1s};
    job.arrival = std::chrono::nanoseconds(std::llround(random.Uniform() * arrivals));
    job.need.persistent = network.parameters * trace.bytes_per_parameter;
    job.need.ephemeral = static_cast<std::uint64_t>(least * std::exp(range * random.Uniform()));
    job.iterations = static_cast<std::uint64_t>(std::max(1.0, std::round(duration)));
    job.width = trace.least_width + (1 - trace.least_width) * random.Uniform();
    mix.jobs.push_back(std::move(job));
  }
  std::ranges::sort(mix.jobs, {}, &SimulatedJob::arrival);
  return mix;
}

}  // namespace tandem::simulation
