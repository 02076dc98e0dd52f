#include "runtimes/training/estimate/meta_ledger.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtimes/training/estimate/meta_kernels.h"

namespace tandem::training {
namespace {

constexpr std::int64_t kNumbers = 1 << 20;
constexpr std::uint64_t kBytes = 4ULL * kNumbers;

at::Tensor Hollow(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
}

TEST(MetaLedger, CountsWhatIsHeldAndTheMostThatWas) {
  MetaLedger ledger;
  at::Tensor first = Hollow({kNumbers});
  Hollow({2 * kNumbers});
  EXPECT_EQ(ledger.live(), kBytes);
  EXPECT_EQ(ledger.peak(), 3 * kBytes);
  const at::Tensor view = first.reshape({2, -1});
  first.reset();
  EXPECT_EQ(ledger.live(), kBytes) << "somebody looks at it still";
  ledger.ForgetPeak();
  EXPECT_EQ(ledger.peak(), kBytes);
}

TEST(MetaLedger, TensorsMayOutliveIt) {
  at::Tensor kept;
  {
    const MetaLedger ledger;
    kept = Hollow({kNumbers});
  }
  MetaLedger next;
  kept.reset();
  EXPECT_EQ(next.live(), 0U);
}

TEST(MetaLedger, GradientsAreHeldFromWhenTheyAreMade) {
  AddMetaKernels();
  MetaLedger ledger;
  at::Tensor weight = Hollow({kNumbers}).set_requires_grad(true);
  {
    const at::Tensor loss = weight.mul(weight).sum();
    EXPECT_LT(ledger.live(), 2 * kBytes + 100) << "the product is not needed for its gradient";
    loss.backward();
  }
  EXPECT_EQ(ledger.live(), 2 * kBytes) << "the weight and its gradient";
}

TEST(MetaKernels, ShapesAreThoseOfTheProcessor) {
  AddMetaKernels();
  const at::Tensor x = at::rand({2, 6, 9, 9});
  const at::Tensor w = at::rand({4, 3, 3, 3});
  const auto hollow = [](const at::Tensor& tensor) {
    return at::empty_like(tensor, tensor.options().device(at::kMeta));
  };
  const auto same = [](const at::Tensor& real, const at::Tensor& told, const char* what) {
    EXPECT_EQ(real.sizes(), told.sizes()) << what;
    EXPECT_EQ(real.scalar_type(), told.scalar_type()) << what;
    EXPECT_TRUE(told.is_meta()) << what;
  };
  const auto convolve = [](const at::Tensor& a, const at::Tensor& b, bool transposed) {
    return at::convolution(a, b, {}, {2, 1}, {1, 0}, {1, 1}, transposed, {0, 0}, 2);
  };
  same(convolve(x, w, false), convolve(hollow(x), hollow(w), false), "convolution");
  const at::Tensor back = at::rand({6, 5, 3, 3});
  same(convolve(x, back, true), convolve(hollow(x), hollow(back), true), "transposed convolution");
  same(at::relu(x), at::relu(hollow(x)), "one by one");
  same(at::where(x.gt(0), x, x.mul(2)), at::where(hollow(x).gt(0), hollow(x), hollow(x).mul(2)), "choice");
  same(at::reflection_pad2d(x, {1, 1, 2, 2}), at::reflection_pad2d(hollow(x), {1, 1, 2, 2}), "computed on zeros");
  same(at::logical_or(x, x), at::logical_or(hollow(x), hollow(x)), "written to");
  EXPECT_THROW((void)hollow(x).sum().item<double>(), c10::Error) << "there is no number";
}

}  // namespace
}  // namespace tandem::training
