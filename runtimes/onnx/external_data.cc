#include "runtimes/onnx/external_data.h"

#include <algorithm>
#include <map>
#include <string>
#include <system_error>

#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// A location that ONNX Runtime takes for an address in its own memory.
constexpr std::string_view kMemoryAddressTag = "_ORT_MEM_ADDR_";

// Both are canonical.
bool IsInside(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

Result<fs::path> Canonical(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) {
    const bool missing = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    return Fail(missing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, "cannot find '{}': {}",
                Readable(path.string(), 300), error.message());
  }
  return real;
}

fs::path FolderOf(const fs::path& model) {
  const fs::path parent = model.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

Result<std::uint64_t> ConfinedFileSize(const fs::path& folder, const std::string& location) {
  TANDEM_ASSIGN(const fs::path file, ConfineLocation(folder, location));
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return Invalid("external data '{}' cannot be read: {}", Readable(location, 100), error.message());
  return size;
}

}  // namespace

Result<fs::path> ConfineModel(const fs::path& model, const fs::path& root) {
  const fs::path folder = FolderOf(model);
  TANDEM_ASSIGN(const fs::path real_root, Canonical(root.empty() ? folder : root));
  TANDEM_ASSIGN(const fs::path real_folder, Canonical(folder));
  TANDEM_ASSIGN(fs::path real_model, Canonical(model));
  for (const fs::path& path : {real_folder, real_model}) {
    if (!IsInside(path, real_root)) {
      return Invalid("'{}' leads outside '{}', to '{}'", Readable(model.string(), 300),
                     Readable(real_root.string(), 300), Readable(path.string(), 300));
    }
  }
  return real_model;
}

Result<fs::path> ConfineLocation(const fs::path& folder, std::string_view location) {
  const std::string shown = Readable(location, 100);
  const fs::path relative(location);
  if (location.empty()) return Invalid("the location of external data is empty");
  if (location.find('\0') != std::string_view::npos) {
    return Invalid("external data '{}' has a NUL character in its location", shown);
  }
  if (relative.is_absolute()) return Invalid("external data '{}' is an absolute path; it must be relative", shown);
  if (std::ranges::contains(relative, fs::path(".."))) {
    return Invalid("external data '{}' leaves the model's folder by '..'", shown);
  }
  if (location.find(kMemoryAddressTag) != std::string_view::npos) {
    return Invalid("external data '{}' is not the name of a file", shown);
  }
  TANDEM_ASSIGN(const fs::path real_folder, Canonical(folder));
  auto real = Canonical(folder / relative);
  if (!real) return Invalid("external data '{}': {}", shown, real.error().message);
  if (!IsInside(*real, real_folder)) {
    return Invalid("external data '{}' leads through a link outside the model's folder", shown);
  }
  std::error_code error;
  if (!fs::is_regular_file(*real, error)) return Invalid("external data '{}' is not a regular file", shown);
  return std::move(*real);
}

Status CheckExternalData(const fs::path& folder, std::span<const ExternalTensor> tensors) {
  std::map<std::string, std::uint64_t> sizes;  // Thousands of tensors usually share one file.
  for (const ExternalTensor& tensor : tensors) {
    auto found = sizes.find(tensor.location);
    if (found == sizes.end()) {
      auto size = ConfinedFileSize(folder, tensor.location);
      if (!size) {
        return Fail(size.error().code, "tensor '{}': {}", Readable(tensor.name, 100), size.error().message);
      }
      found = sizes.emplace(tensor.location, *size).first;
    }
    if (tensor.length != 0 && tensor.length < tensor.byte_size) {
      return Invalid("tensor '{}' has {} bytes by its type and shape, but {} of external data '{}'",
                     Readable(tensor.name, 100), tensor.byte_size, tensor.length, Readable(tensor.location, 100));
    }
    const std::uint64_t length = std::max(tensor.length, tensor.byte_size);
    if (tensor.offset > found->second || length > found->second - tensor.offset) {
      return Invalid("tensor '{}' needs {} bytes at offset {} of external data '{}', which has only {} bytes",
                     Readable(tensor.name, 100), length, tensor.offset, Readable(tensor.location, 100), found->second);
    }
  }
  return {};
}

}  // namespace tandem
