#pragma once

// Counts what a whole program allocates. To be included by one file of a test, which is then a program of its own.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tandem::fakes {

inline std::atomic<std::uint64_t> allocations{0};

inline void* CountedNew(std::size_t bytes) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes > 0 ? bytes : 1);
}

}  // namespace tandem::fakes

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* const memory = tandem::fakes::CountedNew(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return ::operator new(bytes);
}
// The standard library's algorithms ask this way, too.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return tandem::fakes::CountedNew(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return tandem::fakes::CountedNew(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
