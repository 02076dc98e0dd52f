#pragma once

#include <cstddef>
#include <memory>

#include "api/base/result.h"

namespace tandem {

// Memory that a server shares with processes it starts, by a descriptor they inherit. All zero at first; of one size
// for good, so that nobody can take it away under another. Immutable itself; what lies there is for its users to order.
class SharedPages {
 public:
  // What those who attach may do.
  enum class Others {
    kWrite,
    kRead,  // Kept up by the kernel: whoever maps the descriptor after this one cannot write.
  };

  // kInternal when there is no memory; `name` is for people who look at the process.
  [[nodiscard]] static Result<std::unique_ptr<SharedPages>> Create(const char* name, std::size_t bytes, Others others);
  // Takes an inherited descriptor over if it is such memory of that size; else kInvalidArgument, and it stays open.
  [[nodiscard]] static Result<std::unique_ptr<SharedPages>> Attach(int fd, std::size_t bytes, Others others);
  ~SharedPages();
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] void* data() const { return data_; }

 private:
  SharedPages(int fd, void* data, std::size_t bytes) : fd_(fd), data_(data), bytes_(bytes) {}

  const int fd_;
  void* const data_;
  const std::size_t bytes_;
};

}  // namespace tandem
