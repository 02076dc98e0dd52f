#include "api/base/buffer.h"

#include <new>
#include <utility>

namespace tandem {

AlignedBuffer::AlignedBuffer(std::size_t size)
    : data_(static_cast<std::byte*>(::operator new(size, std::align_val_t{kTensorAlignment}))), size_(size) {}

void AlignedBuffer::Free::operator()(std::byte* p) const {
  ::operator delete(p, std::align_val_t{kTensorAlignment});
}

Bytes Bytes::Own(AlignedBuffer buffer) {
  auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
  const std::span<const std::byte> view = owner->span();
  return {view, std::move(owner)};
}

}  // namespace tandem
