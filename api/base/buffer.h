#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tandem {

// Alignment of tensor memory: a cache line, and what the widest vector load wants.
inline constexpr std::size_t kTensorAlignment = 64;

// Bytes on the heap at kTensorAlignment, uninitialised, of fixed size. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);

  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] const std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<std::byte> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

// Read-only bytes and whatever keeps them alive (a request body, an output buffer, a shared-memory mapping).
// The owner is shared because one body backs many tensors, and a batch's output backs many responses.
struct Bytes {
  std::span<const std::byte> view;
  std::shared_ptr<const void> owner;

  [[nodiscard]] static Bytes Own(AlignedBuffer buffer);
  [[nodiscard]] std::size_t size() const { return view.size(); }
  // A part of these bytes with the same owner.
  [[nodiscard]] Bytes Part(std::size_t offset, std::size_t size) const { return {view.subspan(offset, size), owner}; }
};

}  // namespace tandem
