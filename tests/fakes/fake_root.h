#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>

namespace tandem::fakes {

// A root of a file system with what a test puts in it, removed with the object.
class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-root-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FakeRoot() { std::filesystem::remove_all(root_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void Put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace tandem::fakes
