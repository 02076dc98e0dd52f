#include <random>
#include <span>

#include "api/wire/npy.h"
#include "bench/training/network_job.h"
#include "bench/training/onnx_networks.h"
#include "bench/training/sides.h"
#include "runtimes/training/graph/model_file.h"

namespace tandem::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

// Borrows the numbers.
template <typename Number>
Tensor Array(const char* name, DataType type, Shape shape, const std::vector<Number>& numbers) {
  return {.name = name,
          .type = type,
          .shape = std::move(shape),
          .data = {.view = std::as_bytes(std::span(numbers)), .owner = nullptr}};
}

std::vector<std::int64_t> WholeNumbers(std::size_t count, std::int64_t below, std::mt19937_64& random) {
  std::vector<std::int64_t> numbers(count);
  for (std::int64_t& number : numbers) number = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  return numbers;
}

}  // namespace

Status WriteSetup(const Network& network, const std::filesystem::path& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  std::mt19937_64 random(kSeed);
  Shape shape{kExamples};
  std::size_t size = kExamples;
  for (const std::int64_t extent : network.example) {
    shape.push_back(extent);
    size *= static_cast<std::size_t>(extent);
  }
  std::vector<std::int64_t> tokens;
  std::vector<float> numbers;
  if (network.tokens) {
    tokens = WholeNumbers(size, kVocabulary, random);
  } else {
    numbers.resize(size);
    std::normal_distribution<float> normal;
    for (float& number : numbers) number = normal(random);
  }
  const std::vector<std::int64_t> classes = WholeNumbers(kExamples, network.classes, random);
  const Tensor x =
      network.tokens ? Array("x", DataType::kInt64, shape, tokens) : Array("x", DataType::kFp32, shape, numbers);
  TANDEM_TRY(WriteNpz(folder / kDataFile, {x, Array("y", DataType::kInt64, {kExamples}, classes)}));
  return training::SaveModel(OnnxNetwork(network, kSeed), folder / kModelFile);
}

}  // namespace tandem::bench
