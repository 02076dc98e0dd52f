#include "server/repository/override_files.h"

#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "tandem-model-";
constexpr std::size_t kMaxKey = 1024;
constexpr std::size_t kMaxFiles = 256;  // Each costs the repository's worker some milliseconds.

struct Place {
  std::string version;
  std::string file;

  friend auto operator<=>(const Place&, const Place&) = default;
};

Result<Place> ParseKey(std::string_view key) {
  const std::string_view path = key.starts_with("file:") ? key.substr(5) : key;
  if (key.size() > kMaxKey) {
    return Invalid("file override '{}' has {} bytes; at most {} are allowed", Quotable(key), key.size(), kMaxKey);
  }
  const std::size_t slash = path.find('/');
  const std::string_view version = path.substr(0, slash);
  const std::string_view file = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  // What may be a model's name may be a file's: no separators, no control characters, no '..'.
  if (!ParseVersionFolder(version) || !CheckModelName(file)) {
    return Invalid("file override '{}' must be '<version>/<file name>', like '1/model.onnx'", Quotable(key));
  }
  return Place{std::string(version), std::string(file)};
}

Status WriteFile(const fs::path& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  file.close();
  if (!file) return Fail(ErrorCode::kUnavailable, "cannot write '{}': is the disk full?", PathText(path));
  return {};
}

}  // namespace

Result<std::shared_ptr<TemporaryFolder>> TemporaryFolder::Create(const fs::path& parent) {
  std::error_code ignored;  // mkdtemp says what is wrong.
  fs::create_directories(parent, ignored);
  const auto failed = [&] {
    return Fail(ErrorCode::kUnavailable, "cannot make a temporary folder in '{}': {}", PathText(parent), ErrnoText());
  };
  // Under another name until it is locked: RemoveAbandonedFolders of another process must not take it for abandoned.
  std::string made = (parent / "tandem-new-XXXXXX").string();
  if (::mkdtemp(made.data()) == nullptr) return failed();
  const int descriptor = ::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string unique = made.substr(made.size() - 6);
  const fs::path path = parent / (std::string(kFolderPrefix) + unique);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || ::rename(made.c_str(), path.c_str()) != 0) {
    auto error = failed();
    if (descriptor >= 0) ::close(descriptor);
    fs::remove(made, ignored);
    return error;
  }
  return std::shared_ptr<TemporaryFolder>(new TemporaryFolder(path, descriptor));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(descriptor_);
}

void RemoveAbandonedFolders(const fs::path& parent) {
  std::error_code ignored;
  for (fs::directory_iterator it(parent, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (!it->path().filename().string().starts_with(kFolderPrefix)) continue;
    const int descriptor = ::open(it->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat status{};
    if (::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid() &&
        ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      std::error_code kept;
      fs::remove_all(it->path(), kept);
    }
    ::close(descriptor);
  }
}

Result<std::shared_ptr<TemporaryFolder>> WriteOverrideFiles(const OverrideFiles& files, const fs::path& parent,
                                                            std::uint64_t max_bytes) {
  if (files.size() > kMaxFiles) {
    return Invalid("this load has {} files; at most {} are allowed", files.size(), kMaxFiles);
  }
  std::map<Place, const std::string*> places;
  std::uint64_t total = 0;
  for (const auto& [key, contents] : files) {
    TANDEM_ASSIGN(Place place, ParseKey(key));
    total += contents.size();
    if (total > max_bytes) {
      return Fail(ErrorCode::kTooLarge, "the files of this load have more than {} bytes in all", max_bytes);
    }
    if (!places.emplace(std::move(place), &contents).second) {
      return Invalid("file override '{}' is given twice", Quotable(key));
    }
  }
  TANDEM_ASSIGN(auto folder, TemporaryFolder::Create(parent));
  for (const auto& [place, contents] : places) {
    std::error_code error;
    fs::create_directory(folder->path() / place.version, error);
    if (error) return Fail(ErrorCode::kUnavailable, "cannot make a temporary folder: {}", error.message());
    TANDEM_TRY(WriteFile(folder->path() / place.version / place.file, *contents));
  }
  return folder;
}

}  // namespace tandem::repository
