#include "runtimes/training/trainer/process_bytes.h"

#include <fstream>
#include <string>

namespace tandem::training {

std::uint64_t AnonymousBytes() {
  constexpr std::uint64_t kKilobyte = 1024;
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::uint64_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * kKilobyte;
  }
  return 0;
}

}  // namespace tandem::training
