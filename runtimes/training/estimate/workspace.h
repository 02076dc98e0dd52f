#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

// What ATen's operators for the CPU, and the libraries behind them, take besides their results: bytes as functions of
// shapes. Pure.

namespace tandem::training {

// How much a block of so many bytes takes of the heap.
[[nodiscard]] std::uint64_t RoundedBlock(std::uint64_t bytes);

// A convolution. Sizes of space have one to three dimensions.
struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> kernel;
  bool strided = false;
  bool dilated = false;
  bool padded = false;
  bool transposed = false;
  std::uint64_t element = 4;  // Bytes of a number.
  bool single_precision = true;

  friend auto operator<=>(const ConvolutionShape&, const ConvolutionShape&) = default;
};

// What computes it.
struct ConvolutionMachine {
  int threads = 1;
  std::int64_t vector = 16;  // Numbers of single precision that an instruction works on.
};

// ATen has oneDNN compute it, which puts channels in blocks of a vector's length; else it multiplies matrices of
// unfolded windows.
[[nodiscard]] bool IsBlocked(const ConvolutionShape& shape, const ConvolutionMachine& machine);

// What one of its three computations holds: while it computes, and then while its result is brought into its form.
struct Workspace {
  std::uint64_t computing = 0;
  std::uint64_t finishing = 0;
};
[[nodiscard]] Workspace ForwardWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine);
[[nodiscard]] Workspace InputGradientWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine);
[[nodiscard]] Workspace WeightGradientWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine);

// The sums that each thread has for itself in the gradient of a layer normalisation of rows of `width` numbers.
[[nodiscard]] std::uint64_t LayerNormGradientWorkspace(std::int64_t width, std::uint64_t element, int threads);

// What libraries come to keep in the first steps beside what they had when they were loaded: room for products of
// matrices, and machine code for each shape of convolution.
[[nodiscard]] std::uint64_t FrameworkGrowth(std::size_t convolutions);

}  // namespace tandem::training
