#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/base/buffer.h"
#include "server/http/stream.h"

namespace tandem::http {

// What a connection still has to send, in order. Tensors are held, not copied. Connection's thread only.
class OutputQueue {
 public:
  void Add(std::string text);
  void Add(Bytes bytes);

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void Clear();

  // Writes as much as the stream takes just now; kBytes tells how much, kWouldBlock that it was nothing.
  [[nodiscard]] IoResult Flush(Stream& stream);

 private:
  struct Segment {
    std::string text;
    Bytes bytes;
    [[nodiscard]] std::span<const std::byte> view() const {
      return text.empty() ? bytes.view : std::as_bytes(std::span(text));
    }
  };
  void Drop(std::size_t n);

  std::vector<Segment> segments_;  // From first_ on.
  std::size_t first_ = 0;
  std::size_t offset_ = 0;  // Bytes of the first segment that are gone.
  std::size_t size_ = 0;
};

}  // namespace tandem::http
