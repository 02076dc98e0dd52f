// tandem-bench-training: one side of a comparison of `./tandem bench training`, which starts it; not for people.
//   tandem-bench-training write NETWORK FOLDER
//   tandem-bench-training model NETWORK_OR_FILE SEED MODEL_FILE
//   tandem-bench-training tandem|tandem_gated|libtorch|libtorch_heap NETWORK FOLDER BATCH THREADS CHECKPOINT_STEPS
//   tandem-bench-training deep MODEL_FILE FOLDER CLASSES BATCH THREADS STEPS MIB
//   tandem-bench-training memory MODEL_FILE FOLDER CLASSES BATCH THREADS OPTIMIZER
// A side takes its orders from the socket that is its standard input.

#include <charconv>
#include <cstdio>
#include <exception>
#include <string>

#include <unistd.h>

#include "bench/training/depth_side.h"
#include "bench/training/memory_side.h"
#include "bench/training/network_job.h"
#include "bench/training/seeded_model.h"
#include "bench/training/sides.h"

namespace tandem::bench {
namespace {

Result<int> Number(const std::string& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0)
    return Invalid("'{}' is no number", text);
  return number;
}

Result<OptimizerKind> Optimizer(const std::string& text) {
  if (text == "sgd") return OptimizerKind::kSgd;
  if (text == "adam") return OptimizerKind::kAdam;
  return Invalid("there is no optimizer '{}' here; there are sgd, with momentum, and adam", text);
}

Status Memory(const std::vector<std::string>& words) {
  TANDEM_ASSIGN(const int classes, Number(words[3]));
  TANDEM_ASSIGN(const int batch, Number(words[4]));
  TANDEM_ASSIGN(const int threads, Number(words[5]));
  TANDEM_ASSIGN(const OptimizerKind optimizer, Optimizer(words[6]));
  return CompareMemory({.model = words[1],
                        .folder = words[2],
                        .classes = classes,
                        .batch = std::max(1, batch),
                        .optimizer = optimizer,
                        .threads = std::max(1, threads)});
}

Status Deep(const std::vector<std::string>& words) {
  TANDEM_ASSIGN(const int classes, Number(words[3]));
  TANDEM_ASSIGN(const int batch, Number(words[4]));
  TANDEM_ASSIGN(const int threads, Number(words[5]));
  TANDEM_ASSIGN(const int steps, Number(words[6]));
  TANDEM_ASSIGN(const int mebibytes, Number(words[7]));
  return TrainDeep({.model = words[1],
                    .folder = words[2],
                    .classes = classes,
                    .batch = std::max(1, batch),
                    .threads = std::max(1, threads),
                    .steps = std::max(1, steps),
                    .bound = static_cast<std::uint64_t>(mebibytes) << 20});
}

Status Run(const std::vector<std::string>& words) {
  constexpr std::size_t kWordsOfMemory = 7;
  if (words.size() == kWordsOfMemory && words[0] == "memory") return Memory(words);
  if (words.size() == 4 && words[0] == "model") {
    TANDEM_ASSIGN(const int seed, Number(words[2]));
    return WriteSeededModel(words[1], static_cast<std::uint64_t>(seed), words[3]);
  }
  constexpr std::size_t kWordsOfDeep = 8;
  if (words.size() == kWordsOfDeep && words[0] == "deep") return Deep(words);
  if (words.size() != 3 && words.size() != 6) return Invalid("it is started by ./tandem bench training");
  TANDEM_ASSIGN(const Network network, FindNetwork(words[1]));
  if (words[0] == "write") return WriteSetup(network, words[2]);
  if (words.size() != 6) return Invalid("it is started by ./tandem bench training");
  TANDEM_ASSIGN(const int batch, Number(words[3]));
  TANDEM_ASSIGN(const int threads, Number(words[4]));
  TANDEM_ASSIGN(const int checkpoint_steps, Number(words[5]));
  if (batch < 1 || batch > kExamples) return Invalid("a batch of {} does not fit {} examples", batch, kExamples);
  const TrainingSetup setup{.network = network,
                            .folder = words[2],
                            .batch = batch,
                            .threads = std::max(1, threads),
                            .checkpoint_steps = checkpoint_steps};
  Turns turns(STDIN_FILENO);
  if (words[0] == "tandem") return TrainWithTandem(setup, turns);
  if (words[0] == "tandem_gated") return TrainWithTandemGated(setup, turns);
  if (words[0] == "libtorch") return TrainWithTorch(setup, turns);
  if (words[0] == "libtorch_heap") return TrainWithTorchAndHeap(setup, turns);
  return Invalid("there is no side '{}'", words[0]);
}

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  try {
    const auto done = tandem::bench::Run(std::vector<std::string>(argv + 1, argv + argc));
    if (done) return 0;
    std::fprintf(stderr, "tandem-bench-training: %s\n", done.error().message.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tandem-bench-training: %s\n", e.what());
  }
  return 1;
}
