#include "api/base/thread_name.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <pthread.h>

namespace tandem {
namespace {

// With the byte that ends it.
constexpr std::size_t kNameSize = 16;

std::string CurrentName() {
  std::array<char, kNameSize> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

}  // namespace

void NameThread(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, kNameSize - 1)).c_str());
}

std::vector<int> ThreadsNamed(std::string_view name) {
  namespace fs = std::filesystem;
  std::vector<int> threads;
  std::error_code error;
  for (fs::directory_iterator at("/proc/self/task", error), end; !error && at != end; at.increment(error)) {
    std::ifstream comm(at->path() / "comm");
    std::string found;
    if (std::getline(comm, found) && found == name) threads.push_back(std::stoi(at->path().filename().string()));
  }
  std::ranges::sort(threads);
  return threads;
}

ScopedThreadName::ScopedThreadName(std::string_view name) : before_(CurrentName()) {
  NameThread(name);
}

}  // namespace tandem
