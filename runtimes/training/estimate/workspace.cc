#include "runtimes/training/estimate/workspace.h"

#include <algorithm>

namespace tandem::training {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSmallest = std::uint64_t{256} << 10;  // That the heap for tensors takes; as it has it.
constexpr std::uint64_t kStep = 16;                            // Of the C library's blocks.

// Below it one example is too little for oneDNN to pay.
constexpr std::int64_t kLeastNumbers = 20'480;
constexpr std::int64_t kLeastBatch = 16;
constexpr std::int64_t kLargeKernel = 3;

std::uint64_t RoundUp(std::uint64_t size, std::uint64_t to) {
  return (size + to - 1) / to * to;
}

std::uint64_t Product(const std::vector<std::int64_t>& sizes) {
  std::uint64_t product = 1;
  for (const std::int64_t size : sizes) product *= static_cast<std::uint64_t>(size);
  return product;
}

bool IsPoint(const std::vector<std::int64_t>& kernel) {
  return std::ranges::all_of(kernel, [](std::int64_t size) { return size == 1; });
}

// Bytes of a tensor of the convolution when its channels are in blocks.
std::uint64_t Blocked(const ConvolutionShape& shape, std::int64_t channels, const std::vector<std::int64_t>& space,
                      std::int64_t vector) {
  const auto padded = RoundUp(static_cast<std::uint64_t>(channels), static_cast<std::uint64_t>(vector));
  return static_cast<std::uint64_t>(shape.batch) * padded * Product(space) * shape.element;
}

// A first convolution has few channels, and reads them as they lie.
bool ReadsPlain(const ConvolutionShape& shape, std::int64_t vector) {
  return shape.groups == 1 && shape.in_channels < vector;
}

std::uint64_t InputCopy(const ConvolutionShape& shape, std::int64_t vector) {
  return ReadsPlain(shape, vector) ? 0 : RoundedBlock(Blocked(shape, shape.in_channels, shape.in, vector));
}

std::uint64_t OutputCopy(const ConvolutionShape& shape, std::int64_t vector) {
  return RoundedBlock(Blocked(shape, shape.out_channels, shape.out, vector));
}

std::uint64_t WeightCopy(const ConvolutionShape& shape, std::int64_t vector) {
  const auto block = static_cast<std::uint64_t>(vector);
  const bool depthwise = shape.groups > 1 && shape.groups == shape.in_channels && shape.groups == shape.out_channels;
  const auto groups = static_cast<std::uint64_t>(shape.groups);
  std::uint64_t numbers = 0;
  if (depthwise) {
    numbers = RoundUp(groups, block) * Product(shape.kernel);
  } else {
    const auto in = static_cast<std::uint64_t>(shape.in_channels) / groups;
    const auto out = static_cast<std::uint64_t>(shape.out_channels) / groups;
    numbers =
        groups * RoundUp(out, block) * (ReadsPlain(shape, vector) ? in : RoundUp(in, block)) * Product(shape.kernel);
  }
  return RoundedBlock(numbers * shape.element);
}

// Of all examples, one column for each place of the window.
std::uint64_t Columns(const ConvolutionShape& shape) {
  if (IsPoint(shape.kernel) && !shape.strided && !shape.padded) return 0;
  const auto channels = static_cast<std::uint64_t>(shape.in_channels / shape.groups);
  return RoundedBlock(static_cast<std::uint64_t>(shape.batch) * channels * Product(shape.kernel) *
                      Product(shape.transposed ? shape.in : shape.out) * shape.element);
}

}  // namespace

std::uint64_t RoundedBlock(std::uint64_t bytes) {
  return bytes < kSmallest ? RoundUp(bytes, kStep) : RoundUp(bytes, kPage);
}

bool IsBlocked(const ConvolutionShape& shape, const ConvolutionMachine& machine) {
  if (!shape.single_precision) return false;
  const bool pays =
      shape.strided || shape.dilated || shape.batch >= kLeastBatch || !IsPoint(shape.kernel) || machine.threads > 1;
  const bool large = std::ranges::all_of(shape.kernel, [](std::int64_t size) { return size > kLargeKernel; });
  const std::uint64_t numbers =
      static_cast<std::uint64_t>(shape.batch) * static_cast<std::uint64_t>(shape.in_channels) * Product(shape.in);
  return pays && (shape.groups > 1 || large || shape.batch > 1 || numbers > kLeastNumbers);
}

Workspace ForwardWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine) {
  if (!IsBlocked(shape, machine)) return {.computing = 0, .finishing = Columns(shape)};
  const std::uint64_t result = OutputCopy(shape, machine.vector);
  return {.computing = InputCopy(shape, machine.vector) + WeightCopy(shape, machine.vector) + result,
          .finishing = result};
}

Workspace InputGradientWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine) {
  if (!IsBlocked(shape, machine)) return {.computing = 0, .finishing = Columns(shape)};
  const std::uint64_t result = RoundedBlock(Blocked(shape, shape.in_channels, shape.in, machine.vector));
  return {.computing = OutputCopy(shape, machine.vector) + WeightCopy(shape, machine.vector) + result,
          .finishing = result};
}

Workspace WeightGradientWorkspace(const ConvolutionShape& shape, const ConvolutionMachine& machine) {
  if (!IsBlocked(shape, machine)) return {.computing = 0, .finishing = Columns(shape)};
  const std::uint64_t result = WeightCopy(shape, machine.vector);
  // Each thread but one sums for itself, as far as there are examples.
  const auto sums = static_cast<std::uint64_t>(std::min<std::int64_t>(machine.threads, shape.batch) - 1);
  return {.computing = InputCopy(shape, machine.vector) + OutputCopy(shape, machine.vector) + result + sums * result,
          .finishing = result};
}

std::uint64_t LayerNormGradientWorkspace(std::int64_t width, std::uint64_t element, int threads) {
  return RoundedBlock(2 * static_cast<std::uint64_t>(width) * element * static_cast<std::uint64_t>(threads));
}

std::uint64_t FrameworkGrowth(std::size_t convolutions) {
  // As found with oneDNN 3.6 and OpenBLAS on processors with AVX-512.
  constexpr std::uint64_t kOnce = std::uint64_t{5} << 20;
  constexpr std::uint64_t kEach = std::uint64_t{330} << 10;
  return kOnce + kEach * convolutions;
}

}  // namespace tandem::training
