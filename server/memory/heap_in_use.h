#pragma once

#include <cstdint>
#include <optional>

#include "api/base/mutex.h"

namespace tandem {

// Bytes that all threads of this process have allocated and not freed; nullopt where nobody counts them, as under
// sanitizers.
[[nodiscard]] std::optional<std::uint64_t> HeapInUse();

// Sees what things take of the heap that are made one at a time. Shared by all who make them. Thread-safe.
class HeapGrowth {
 public:
  // From its making on. One that meets another has seen nothing.
  class Look {
   public:
    explicit Look(HeapGrowth& growth);
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    // What was taken until now and is kept; nullopt when that cannot be told.
    [[nodiscard]] std::optional<std::uint64_t> Taken() const;

   private:
    HeapGrowth& growth_;
    std::optional<std::uint64_t> before_;
    std::uint64_t number_ = 0;
  };

 private:
  Mutex mu_;
  int under_way_ GUARDED_BY(mu_) = 0;
  std::uint64_t begun_ GUARDED_BY(mu_) = 0;
  std::uint64_t met_ GUARDED_BY(mu_) = 0;  // All looks up to this one have met another, or are over.
};

}  // namespace tandem
