#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "api/base/result.h"

namespace tandem::training {

// What a checkpoint holds: a text (the state of the run, as JSON) and tensors by name.
struct Checkpoint {
  std::string state;
  std::map<std::string, at::Tensor> tensors;
};

struct CheckpointSize {
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32 of all that stands before it in the file.
};

// A file that is there whole or not at all: written aside, flushed to the disk, then renamed. Its layout: "TANDEMCK",
// the version, the length of a manifest and the manifest (state, and name, type and shape of each tensor), the tensors
// one after the other, the checksum. Errors name the file; what was there before stays.
[[nodiscard]] Result<CheckpointSize> WriteCheckpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// kInvalidArgument for one that is torn, corrupt or of another version.
[[nodiscard]] Result<Checkpoint> ReadCheckpoint(const std::filesystem::path& file);

}  // namespace tandem::training
