#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "profiler/op_classifier.h"
#include "profiler/op_profile.h"
#include "profiler/run_log.h"

namespace tandem {

// Learns what the operators of one trainer do to requests: for each pairing of an operator and a model, how much longer
// the model's runs take beside it than the model's other runs do. What was seen counts less as it gets older, so that
// an operator that is kept away from requests gets another chance. It keeps no more pairings than there are of the
// operators and models that it is told of (RunLog, TrainerBoard), for some minutes. Pure but for what it has seen. One
// thread.
class InterferenceMeter {
 public:
  static constexpr std::chrono::seconds kHalfLife{60};
  // A run is beside an operator that ran for at least this part of it.
  static constexpr double kLeastOverlap = 0.1;

  // `ops` are the trainer's at that time, in the order in which they ended.
  void Observe(const RunSample& run, std::span<const OpRecord> ops);
  // Lets what was seen get older.
  void Age(std::chrono::nanoseconds by);

  // The operator with each model of which enough is known to tell anything, by the models' names.
  [[nodiscard]] std::vector<Interference> Of(std::uint32_t op) const;

 private:
  // Logarithms of ratios: the mean of those is what a factor does.
  struct Sums {
    double runs = 0;
    double sum = 0;
    double squares = 0;

    void Add(double value);
    void Scale(double by);
  };
  struct Model {
    Sums all;
    std::map<std::uint32_t, Sums> beside;
  };

  [[nodiscard]] static std::optional<Interference> Pairing(const std::string& name, const Sums& all,
                                                           const Sums& beside);

  std::map<std::string, Model> models_;
};

}  // namespace tandem
