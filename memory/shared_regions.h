#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/mutex.h"
#include "api/base/result.h"

namespace tandem {

// A POSIX shared-memory object that a client offers for its tensors. Read and written through its descriptor, never
// mapped: a client that truncates it gets an error, where a mapping would end the server with SIGBUS.
// Immutable; shared between the registry and the requests that use it.
class SharedRegion {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const SharedRegion>> Open(std::string name, std::string key,
                                                                        std::uint64_t offset, std::uint64_t byte_size);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t byte_size() const { return byte_size_; }

  // `offset` counts from the start of the region.
  [[nodiscard]] Result<AlignedBuffer> Read(std::uint64_t offset, std::uint64_t size) const;
  [[nodiscard]] Status Write(std::uint64_t offset, std::span<const std::byte> data) const;
  // Whether such a range can be read and written now.
  [[nodiscard]] Status CheckRange(std::uint64_t offset, std::uint64_t size) const;

 private:
  SharedRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t byte_size, int fd);

  const std::string name_;
  const std::string key_;
  const std::uint64_t offset_;
  const std::uint64_t byte_size_;
  const int fd_;
};

// The registered regions by name. Thread-safe.
class SharedRegions {
 public:
  static constexpr std::size_t kMaxRegions = 4096;

  // Every region keeps a descriptor; `max_regions` bounds what they take of the process's.
  explicit SharedRegions(std::size_t max_regions = kMaxRegions) : max_regions_(max_regions) {}

  [[nodiscard]] Status Register(const std::string& name, const std::string& key, std::uint64_t offset,
                                std::uint64_t byte_size);
  // Requests under way keep what they use. Unknown names are fine, as the protocol has it.
  void Unregister(std::string_view name);
  void UnregisterAll();

  [[nodiscard]] Result<std::shared_ptr<const SharedRegion>> Find(std::string_view name) const;
  [[nodiscard]] std::vector<std::shared_ptr<const SharedRegion>> All() const;

 private:
  // Constant after construction.
  const std::size_t max_regions_;

  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<const SharedRegion>, std::less<>> regions_ GUARDED_BY(mu_);
};

}  // namespace tandem
