#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem {

// One file in a .npz file, which is a ZIP archive of .npy files.
struct NpzEntry {
  std::string_view name;     // As the archive has it, into its bytes: "x.npy", or whatever else somebody wrote there.
  std::uint16_t method = 0;  // kNpzStored, kNpzDeflated, or one that is not known.
  std::uint32_t crc = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

inline constexpr std::uint16_t kNpzStored = 0;
inline constexpr std::uint16_t kNpzDeflated = 8;
inline constexpr std::string_view kNpySuffix = ".npy";

// The error for an archive, or an array in one, that is not as it should be.
[[nodiscard]] std::unexpected<Error> BrokenNpz(const std::string& name, std::string_view what);

// What the archive holds, by the list at its end; with the 64-bit fields of large ones. `file` stands for it in errors.
[[nodiscard]] Result<std::vector<NpzEntry>> ListNpz(std::string_view zip, const std::string& file);

// The bytes of one entry as they lie in the archive: the .npy file when it is stored, else what unpacks to it.
[[nodiscard]] Result<std::string_view> PackedBytes(std::string_view zip, const NpzEntry& entry,
                                                   const std::string& array);

}  // namespace tandem
