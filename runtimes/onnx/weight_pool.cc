#include "runtimes/onnx/weight_pool.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace tandem {

Result<std::shared_ptr<const MappedFile>> MappedFile::Map(int descriptor, std::size_t size) {
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, /*offset=*/0);
  if (address == MAP_FAILED) return Fail(ErrorCode::kUnavailable, "a file of {} bytes cannot be mapped", size);
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::DropPages(std::span<const std::byte> bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = std::bit_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = std::bit_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  // Neighbours on the same pages lose nothing either: nobody writes to them.
  if (begin < end) (void)::madvise(std::bit_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::vector<std::shared_ptr<const SharedWeight>> WeightPool::Share(
    std::vector<std::shared_ptr<const SharedWeight>> weights) {
  const MutexLock lock(mu_);
  std::erase_if(known_, [](const auto& known) { return known.second.expired(); });
  for (std::shared_ptr<const SharedWeight>& weight : weights) {
    const std::span<const std::byte> bytes = weight->bytes();
    const std::size_t hash = std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    std::shared_ptr<const SharedWeight> same;
    const auto [begin, end] = known_.equal_range(hash);
    for (auto it = begin; it != end && same == nullptr; ++it) {
      same = it->second.lock();
      if (same == nullptr) continue;
      const bool pages_go = same->mapped() && !weight->mapped();
      if (pages_go || !std::ranges::equal(same->bytes(), bytes)) same = nullptr;
    }
    if (same != nullptr) {
      weight = std::move(same);
    } else {
      known_.emplace(hash, weight);
    }
  }
  return weights;
}

WeightPool::Count WeightPool::InUse() const {
  const MutexLock lock(mu_);
  Count count;
  for (const auto& [hash, known] : known_) {
    const auto weight = known.lock();
    if (weight == nullptr) continue;
    ++count.weights;
    count.bytes += weight->bytes().size();
  }
  return count;
}

}  // namespace tandem
