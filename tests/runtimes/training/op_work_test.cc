#include "runtimes/training/graph/op_work.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem::training {
namespace {

double Flops(std::string_view kind, std::vector<at::Tensor> inputs, const at::Tensor& output) {
  return WorkOf(kind, inputs, std::vector{output}).flops;
}

TEST(OpWork, CountsProductsAndSumsOfMatrices) {
  EXPECT_EQ(Flops("MatMul", {at::zeros({3, 5}), at::zeros({5, 7})}, at::zeros({3, 7})), 2 * 3 * 5 * 7);
  EXPECT_EQ(Flops("MatMul", {at::zeros({2, 3, 5}), at::zeros({2, 5, 7})}, at::zeros({2, 3, 7})), 2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(Flops("Gemm", {at::zeros({3, 5}), at::zeros({7, 5}), at::zeros({7})}, at::zeros({3, 7})), 2 * 3 * 5 * 7)
      << "a factor may be transposed";
}

TEST(OpWork, CountsProductsAndSumsOfConvolutions) {
  EXPECT_EQ(Flops("Conv", {at::zeros({2, 8, 10, 10}), at::zeros({16, 8, 3, 3})}, at::zeros({2, 16, 8, 8})),
            2.0 * (2 * 16 * 8 * 8) * (8 * 3 * 3));
  EXPECT_EQ(Flops("Conv", {at::zeros({2, 8, 10, 10}), at::zeros({8, 1, 3, 3})}, at::zeros({2, 8, 8, 8})),
            2.0 * (2 * 8 * 8 * 8) * (3 * 3))
      << "each channel by itself";
  EXPECT_EQ(Flops("ConvTranspose", {at::zeros({1, 4, 5, 5}), at::zeros({4, 6, 2, 2})}, at::zeros({1, 6, 10, 10})),
            2.0 * (4 * 5 * 5) * (6 * 2 * 2));
}

TEST(OpWork, CountsOneForEachNumberElsewhere) {
  EXPECT_EQ(Flops("Relu", {at::zeros({4, 6})}, at::zeros({4, 6})), 24);
  EXPECT_EQ(WorkOf("Relu", std::vector{at::zeros({4, 6}), at::Tensor()}, std::vector{at::zeros({4, 6})}).bytes,
            2U * 24 * 4);
}

TEST(OpWork, IsNothingForWhatIsEmpty) {
  EXPECT_EQ(Flops("MatMul", {at::zeros({0, 5}), at::zeros({5, 7})}, at::zeros({0, 7})), 0);
  EXPECT_EQ(Flops("Conv", {at::zeros({1}), at::Tensor()}, at::zeros({0})), 0);
  EXPECT_EQ(WorkOf("Relu", {}, {}).flops, 0);
}

}  // namespace
}  // namespace tandem::training
