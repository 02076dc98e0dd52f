#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/tensor.h"

namespace tandem::loadgen {

// What the answers of a model must be.
struct Expectation {
  // By name; outputs that an answer has besides are not looked at. Empty: all answers to a request must be as its
  // first.
  std::vector<Tensor> outputs;
  double tolerance = 0;     // By how much a float may differ; 0: not in one bit.
  std::uint32_t every = 1;  // Only the first of so many answers is looked at.
};

enum class AnswerForm : std::uint8_t { kRest, kGrpc };

// Compares the answers to one request with what they must be. An answer with the bytes of one that was right costs one
// comparison of memory; only others are decoded. Used by one thread, the generator's.
class AnswerCheck {
 public:
  AnswerCheck(Expectation expectation, AnswerForm form);

  // Counts an answer; whether it is one that is to be looked at.
  [[nodiscard]] bool Due() { return answers_++ % expectation_.every == 0; }

  // What is wrong with the answer; nothing when it is right.
  [[nodiscard]] std::optional<std::string> Mismatch(std::string body);

 private:
  // Constant after construction, but for the outputs where the first answer gives them.
  Expectation expectation_;
  const AnswerForm form_;

  std::uint64_t answers_ = 0;
  std::string right_;  // The bytes of the answer that was last found right.
};

// Where two tensors differ, for people; nothing when they do not. Floats may differ by `tolerance`; with one, NaN
// equals NaN.
[[nodiscard]] std::optional<std::string> Difference(const Tensor& expected, const Tensor& actual, double tolerance);

}  // namespace tandem::loadgen
