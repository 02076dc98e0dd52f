#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/tensor.h"
#include "runtimes/training/data/picture.h"

// Writes the files that training data is read from.

namespace tandem::training {

// A folder for one test that goes with it.
class DataFolder {
 public:
  DataFolder();
  ~DataFolder() { std::filesystem::remove_all(path_); }
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Makes the folders on the way.
  void Write(const std::string& file, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A .npy file; `shape` as Python writes it.
std::string Npy(std::string_view descr, std::string_view shape, std::string_view data,
                std::string_view fortran_order = "False");

struct NpzMember {
  std::string name;  // With its suffix.
  std::string bytes;
  std::uint64_t claimed_size = 0;  // In the list of the archive; 0: as it is.
};
// A .npz file; `wide` puts sizes and places in the 64-bit fields.
std::string Npz(const std::vector<NpzMember>& members, bool packed = false, bool wide = false);

std::string Png(const Picture& picture);
std::string PngWithAlpha(const Picture& opaque, std::uint8_t alpha);
std::string Jpeg(const Picture& picture, int quality = 95, bool progressive = false);

// A picture of one colour.
Picture Plain(int width, int height, std::initializer_list<std::uint8_t> colour);

// The elements of a tensor.
template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.view.data(), tensor.data.size());
  return values;
}

}  // namespace tandem::training
