#include "api/base/thread_name.h"

#include <array>

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

ScopedThreadName::ScopedThreadName(std::string_view name) : before_(CurrentName()) {
  NameThread(name);
}

}  // namespace tandem
