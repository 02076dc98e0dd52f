// Updates against the published formulas, written out for one number, and the state that a checkpoint keeps.

#include "runtimes/training/learning/optimizer.h"

#include <cmath>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

namespace tandem::training {
namespace {

constexpr double kGradients[] = {0.5, -0.25, 2, 0.125};

// The parameter after each gradient, beginning at 1.
std::vector<double> Updates(const OptimizerSpec& spec) {
  at::Tensor parameter = at::ones({3}, at::kDouble).set_requires_grad(true);
  Optimizer optimizer(spec, {{"w", parameter}});
  std::vector<double> values;
  for (const double gradient : kGradients) {
    parameter.mutable_grad() = at::full({3}, gradient, at::kDouble);
    optimizer.Step(spec.learning_rate, [] {});
    optimizer.ClearGradients();
    values.push_back(parameter[1].item<double>());
  }
  return values;
}

void ExpectUpdates(const OptimizerSpec& spec, const std::function<double(double w, double g, int step)>& formula) {
  const std::vector<double> got = Updates(spec);
  double w = 1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    w = formula(w, kGradients[i], static_cast<int>(i) + 1);
    EXPECT_NEAR(got[i], w, 1e-6) << "after step " << i + 1;
  }
}

TEST(Optimizer, SgdFollowsTheGradient) {
  const OptimizerSpec spec{.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .weight_decay = 0.01};
  ExpectUpdates(spec, [](double w, double g, int) { return w - 0.1 * (g + 0.01 * w); });
}

TEST(Optimizer, SgdWithMomentumRemembersGradients) {
  double velocity = 0;
  const OptimizerSpec spec{.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9};
  ExpectUpdates(spec, [&](double w, double g, int) {
    velocity = 0.9 * velocity + g;
    return w - 0.1 * velocity;
  });
}

TEST(Optimizer, NesterovLooksAhead) {
  double velocity = 0;
  const OptimizerSpec spec{.kind = OptimizerKind::kSgd, .learning_rate = 0.1, .momentum = 0.9, .nesterov = true};
  ExpectUpdates(spec, [&](double w, double g, int) {
    velocity = 0.9 * velocity + g;
    return w - 0.1 * (g + 0.9 * velocity);
  });
}

TEST(Optimizer, AdamScalesByTheMeanSquare) {
  double mean = 0;
  double square = 0;
  const OptimizerSpec spec{.kind = OptimizerKind::kAdam, .learning_rate = 0.1, .weight_decay = 0.01};
  ExpectUpdates(spec, [&](double w, double g, int step) {
    g += 0.01 * w;
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    const double corrected = mean / (1 - std::pow(0.9, step));
    return w - 0.1 * corrected / (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
  });
}

TEST(Optimizer, AdamWDecaysTheWeightItself) {
  double mean = 0;
  double square = 0;
  const OptimizerSpec spec{.kind = OptimizerKind::kAdamW, .learning_rate = 0.1, .weight_decay = 0.01};
  ExpectUpdates(spec, [&](double w, double g, int step) {
    mean = 0.9 * mean + 0.1 * g;
    square = 0.999 * square + 0.001 * g * g;
    const double corrected = mean / (1 - std::pow(0.9, step));
    return w * (1 - 0.1 * 0.01) - 0.1 * corrected / (std::sqrt(square / (1 - std::pow(0.999, step))) + 1e-8);
  });
}

TEST(Optimizer, ClippingKeepsTheDirectionAndBoundsTheNorm) {
  at::Tensor a = at::zeros({2}).set_requires_grad(true);
  at::Tensor b = at::zeros({1}).set_requires_grad(true);
  Optimizer optimizer({}, {{"a", a}, {"b", b}});
  a.mutable_grad() = at::tensor({3.0F, 0.0F});
  b.mutable_grad() = at::tensor({4.0F});
  EXPECT_NEAR(optimizer.ClipGradients(1), 5, 1e-6);
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(b.grad()[0].item<double>(), 0.8, 1e-6);
  EXPECT_NEAR(optimizer.ClipGradients(10), 1, 1e-6) << "what is within the bound stays";
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.6, 1e-6);
}

TEST(Optimizer, AParameterWithoutAGradientStays) {
  at::Tensor used = at::ones({1}).set_requires_grad(true);
  at::Tensor unused = at::ones({1}).set_requires_grad(true);
  Optimizer optimizer({.learning_rate = 0.1, .weight_decay = 0.5}, {{"used", used}, {"unused", unused}});
  used.mutable_grad() = at::ones({1});
  int asked = 0;
  optimizer.Step(0.1, [&] { ++asked; });
  EXPECT_EQ(asked, 1) << "asked for each parameter that changes";
  EXPECT_LT(used.item<double>(), 1);
  EXPECT_EQ(unused.item<double>(), 1);
}

// Two optimizers: one goes on, the other begins from what the first one saved. They must not differ in a bit.
void ExpectExactResume(const OptimizerSpec& spec) {
  const auto gradient = [](int step) { return at::full({5}, 0.1 * step - 0.3); };
  at::Tensor first = at::linspace(-1, 1, 5).set_requires_grad(true);
  Optimizer a(spec, {{"w", first}});
  const auto step = [&](Optimizer& optimizer, at::Tensor& w, int number) {
    w.mutable_grad() = gradient(number);
    optimizer.Step(0.01, [] {});
  };
  for (int i = 1; i <= 3; ++i) step(a, first, i);
  at::Tensor second = first.detach().clone().set_requires_grad(true);
  Optimizer b(spec, {{"w", second}});
  NamedTensors saved;
  for (const auto& [name, tensor] : a.State()) saved.emplace(name, tensor.clone());
  ASSERT_TRUE(b.Restore(saved)) << b.Restore(saved).error().message;
  for (int i = 4; i <= 8; ++i) {
    step(a, first, i);
    step(b, second, i);
  }
  EXPECT_TRUE(at::equal(first, second));
}

TEST(Optimizer, GoesOnExactlyFromItsState) {
  ExpectExactResume({.kind = OptimizerKind::kSgd});
  ExpectExactResume({.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true});
  ExpectExactResume({.kind = OptimizerKind::kAdam});
  ExpectExactResume({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1});
}

TEST(Optimizer, RefusesAStateThatDoesNotFit) {
  at::Tensor w = at::ones({2}).set_requires_grad(true);
  Optimizer optimizer({}, {{"w", w}});
  const NamedTensors state = {{"w/steps", at::zeros({})}, {"w/first", at::zeros({3})}, {"w/second", at::zeros({2})}};
  const Status wrong_shape = optimizer.Restore(state);
  ASSERT_FALSE(wrong_shape);
  EXPECT_NE(wrong_shape.error().message.find("w/first"), std::string::npos) << wrong_shape.error().message;
  EXPECT_FALSE(optimizer.Restore({{"other/steps", at::zeros({})}}));
  EXPECT_FALSE(optimizer.Restore({{"w/steps", at::zeros({})}}));
}

}  // namespace
}  // namespace tandem::training
