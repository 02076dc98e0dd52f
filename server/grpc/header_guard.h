#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tandem::grpc_front {

// A block of header fields, as it is sent, may be so large: four times what a call's metadata may have.
inline constexpr std::size_t kMaxHeaderBlock = 32 * 1024;

// Follows what a client sends on one HTTP/2 connection, frame by frame, and says when a block of header fields (a
// HEADERS frame with its CONTINUATIONs) grows beyond any use. Nothing is kept of the bytes. Used by one thread at a
// time.
//
// gRPC 1.51 keeps an unfinished field however long it gets, and reads it from its beginning again with every frame
// (CVE-2023-33953): without this, strangers could fill its memory and take its time.
class HeaderGuard {
 public:
  // The next bytes of the connection. False: the client has gone too far, and no more of it is to be read.
  [[nodiscard]] bool Follow(std::span<const std::byte> bytes);

 private:
  static constexpr std::size_t kPrefaceSize = 24;
  static constexpr std::size_t kFrameHeadSize = 9;
  static constexpr std::size_t kMaxFramesOfABlock = 64;  // Also empty ones cost time.

  [[nodiscard]] bool OnFrameHead();

  std::size_t skip_ = kPrefaceSize;  // Bytes before the next frame's head.
  std::array<std::uint8_t, kFrameHeadSize> head_{};
  std::size_t head_size_ = 0;
  std::size_t block_bytes_ = 0;
  std::size_t block_frames_ = 0;
};

}  // namespace tandem::grpc_front
