#pragma once

#include <string_view>

#include <c10/util/Exception.h>

#include "api/base/format.h"
#include "api/base/result.h"

namespace tandem::training {

// Whoever is told of it may try again with more; so it is never taken for a mistake in the job.
[[nodiscard]] inline Error OutOfMemory(std::string_view what) {
  return {ErrorCode::kTooLarge, Format("out of memory: {}", what)};
}

// What libtorch threw while it did `what`. Its allocator for the CPU has no kind of error of its own.
[[nodiscard]] inline Error TorchError(std::string_view what, const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  const bool memory =
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr || text.contains("DefaultCPUAllocator");
  if (memory) return OutOfMemory(Format("{}: {}", what, text));
  return {ErrorCode::kInvalidArgument, Format("{}: {}", what, text)};
}

}  // namespace tandem::training
