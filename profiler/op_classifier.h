#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "profiler/op_profile.h"

namespace tandem {

enum class OpClass { kLight, kHeavy };

[[nodiscard]] constexpr std::string_view OpClassName(OpClass op_class) {
  return op_class == OpClass::kHeavy ? "heavy" : "light";
}

// How much longer requests took that ran beside an operator.
struct Interference {
  std::string model;  // Whose requests those were.
  double ratio = 1;   // To the time of those that ran beside other operators, or none.
  double error = 0;   // Standard error of the ratio.
  double runs = 0;    // Beside the operator, older ones counting less.

  // What it is at least, as good as certainly. Of hundreds of operators, looked at every second, chance makes some seem
  // two or three standard errors slower at any time.
  static constexpr double kCertain = 4;
  [[nodiscard]] double certain() const { return ratio - kCertain * error; }
  // Than without it, beyond what chance explains.
  [[nodiscard]] bool longer() const { return certain() > 1; }
};

// An operator beside the requests of one model.
struct OpPairing {
  Interference seen;
  std::optional<OpClass> op_class;  // Nullopt: too little is known.

  [[nodiscard]] bool heavy() const { return op_class == OpClass::kHeavy; }
  // Larger where requests are slowed more certainly; where too little is known, below the others.
  [[nodiscard]] std::pair<std::optional<OpClass>, double> weight() const { return {op_class, seen.certain()}; }
  // In words; of one of which enough is known.
  [[nodiscard]] std::string Why() const;
};

// What an operator is taken for, and why.
struct OpVerdict {
  OpClass op_class = OpClass::kLight;
  bool measured = false;  // By what requests beside it took; else by its own time.
  std::string reason;     // In words.
};

// Says which operators are heavy. First by the time that they take, estimated from their work until it was seen; then
// by what they do to requests of each model, when enough of those ran beside them: an operator is what it is beside the
// model that it slows most. Pure.
class OpClassifier {
 public:
  // An operator that takes so long is heavy, and one that takes clearly less is light; in between it stays what it was.
  static constexpr std::chrono::microseconds kHeavyTime{1'000};
  static constexpr std::chrono::microseconds kLightTime{700};
  // The same for how much longer requests take.
  static constexpr double kHeavyRatio = 1.10;
  static constexpr double kLightRatio = 1.05;
  // So many runs are needed before a time counts.
  static constexpr std::uint64_t kRunsOfOp = 5;
  // What must be known of an interference for it to count, and for it to go on counting.
  struct Evidence {
    double runs;
    double error;
  };
  static constexpr Evidence kEnough{.runs = 30, .error = 0.05};
  static constexpr Evidence kStillEnough{.runs = 15, .error = 0.08};

  // What the machine does in a second, for estimates.
  struct Speed {
    double flops = 50e9;
    double bytes = 10e9;
  };

  OpClassifier() = default;
  explicit OpClassifier(Speed speed) : speed_(speed) {}

  // By its time alone; `before` is what it was taken for by that.
  [[nodiscard]] OpVerdict ByTime(const OpTotals& op, OpClass before) const;
  // Beside one model; nullopt while too little is known. `before` is what it was taken for there.
  [[nodiscard]] static std::optional<OpClass> Beside(const Interference& seen, std::optional<OpClass> before);
  // The pairing that decides: of those that are known the heaviest, that slows requests most certainly. Null: none is.
  [[nodiscard]] static const OpPairing* Heaviest(std::span<const OpPairing> pairings);
  // Altogether: what it is in that pairing, or by its time when there is none.
  [[nodiscard]] static OpVerdict Altogether(std::span<const OpPairing> pairings, const OpVerdict& by_time);

  // What an operator would take by its work alone, whichever of computing and memory takes longer.
  [[nodiscard]] std::chrono::nanoseconds Estimate(const OpWork& work) const;

 private:
  Speed speed_;
};

}  // namespace tandem
