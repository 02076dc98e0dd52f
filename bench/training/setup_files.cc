#include <cstring>
#include <format>
#include <fstream>
#include <random>

#include "bench/training/onnx_networks.h"
#include "bench/training/sides.h"
#include "runtimes/training/graph/model_file.h"

namespace tandem::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

// Format 1.0 of NumPy's files.
template <typename Number>
Status WriteArray(const std::filesystem::path& file, const char* type, const std::vector<std::int64_t>& shape,
                  const std::vector<Number>& numbers) {
  std::string extents;
  for (const std::int64_t extent : shape) extents += std::format("{},", extent);
  std::string head = std::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, extents);
  constexpr std::size_t kBefore = 10;
  head.append(63 - (kBefore + head.size()) % 64, ' ');
  head += '\n';
  const auto length = static_cast<std::uint16_t>(head.size());
  std::ofstream stream(file, std::ios::binary);
  stream.write("\x93NUMPY\x01\x00", 8);
  stream.put(static_cast<char>(length & 0xff)).put(static_cast<char>(length >> 8));
  stream << head;
  stream.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
  if (!stream.flush()) return Fail(ErrorCode::kInternal, "'{}' cannot be written", file.string());
  return {};
}

}  // namespace

Status WriteSetup(const Network& network, const std::filesystem::path& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder / "data", ec);
  std::mt19937_64 random(kSeed);
  std::vector<std::int64_t> shape{kExamples};
  std::size_t size = kExamples;
  for (const std::int64_t extent : network.example) {
    shape.push_back(extent);
    size *= static_cast<std::size_t>(extent);
  }
  if (network.tokens) {
    std::vector<std::int64_t> tokens(size);
    for (std::int64_t& token : tokens) token = static_cast<std::int64_t>(random() % kVocabulary);
    TANDEM_TRY(WriteArray(folder / "data" / "x.npy", "<i8", shape, tokens));
  } else {
    std::vector<float> numbers(size);
    std::normal_distribution<float> normal;
    for (float& number : numbers) number = normal(random);
    TANDEM_TRY(WriteArray(folder / "data" / "x.npy", "<f4", shape, numbers));
  }
  std::vector<std::int64_t> classes(kExamples);
  for (std::int64_t& label : classes) {
    label = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(network.classes));
  }
  TANDEM_TRY(WriteArray(folder / "data" / "y.npy", "<i8", {kExamples}, classes));
  return training::SaveModel(OnnxNetwork(network, kSeed), folder / "model.onnx");
}

}  // namespace tandem::bench
