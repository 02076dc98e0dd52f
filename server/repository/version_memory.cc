#include "server/repository/version_memory.h"

#include <algorithm>

#include "api/base/shape.h"

namespace tandem::repository {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// What a session takes besides its weights, at most.
constexpr std::uint64_t kMostBeside = 64 * kMiB;
constexpr std::uint64_t kTimesAsWide = 8;
constexpr std::uint64_t kMostOfRun = std::uint64_t{1} << 40;

std::uint64_t BytesOf(const TensorSpec& spec, std::int64_t batch) {
  if (spec.type == DataType::kBytes) return 0;  // Texts of any length.
  Shape shape = spec.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) shape[i] = i == 0 ? batch : 1;
  }
  const auto bytes = ByteSize(spec.type, shape);
  return bytes && *bytes > 0 ? std::min(static_cast<std::uint64_t>(*bytes), kMostOfRun) : 0;
}

}  // namespace

std::uint64_t VersionMemory::Persistent() const {
  return std::min(std::max(weights, measured.value_or(0)), 2 * weights + kMostBeside);
}

std::uint64_t LargestInputBytes(const ModelSignature& served, const BatchSettings& batching) {
  const std::int64_t batch = std::max<std::int64_t>(batching.max_batch_size, 1);
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : served.inputs) bytes = std::min(bytes + BytesOf(spec, batch), kMostOfRun);
  return bytes;
}

std::uint64_t GuessRunBytes(const ModelSignature& served, const BatchSettings& batching) {
  const std::int64_t batch = std::max<std::int64_t>(batching.max_batch_size, 1);
  std::uint64_t bytes = 0;
  for (const auto* const specs : {&served.inputs, &served.outputs}) {
    for (const TensorSpec& spec : *specs) bytes = std::min(bytes + BytesOf(spec, batch), kMostOfRun);
  }
  return std::max(kTimesAsWide * bytes, kMiB);
}

}  // namespace tandem::repository
