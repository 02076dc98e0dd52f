#include "server/jobs/publisher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/format.h"
#include "api/wire/proto/model_config.pb.h"
#include "server/jobs/succession_check.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

constexpr int kPlaces = 16;  // Somebody else may add versions at the same time.

// Why a version that should be served is not.
std::string WhyNot(const repository::ModelRepository& repository, const std::string& model,
                   const std::string& version) {
  for (const auto& entry : repository.Index(/*ready_only=*/false)) {
    if (entry.name == model && entry.version == version && !entry.reason.empty()) return entry.reason;
  }
  return "its version policy does not serve it";
}

// The folder of a version while it comes or goes; the repository passes it over.
fs::path Aside(const fs::path& folder) {
  return folder.parent_path() / Format(".{}.partial", folder.filename().string());
}

// Has a file or a folder written to the disk.
std::error_code Flush(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = fd >= 0 && ::fsync(fd) == 0;
  const std::error_code error = flushed ? std::error_code() : std::error_code(errno, std::generic_category());
  if (fd >= 0) ::close(fd);
  return error;
}

// Never in the place of something, not even of a folder that is empty yet, where the file system can do that.
std::error_code RenameToNew(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  std::error_code ec(errno, std::generic_category());
  if (ec == std::errc::invalid_argument || ec == std::errc::function_not_supported) fs::rename(from, to, ec);
  return ec;
}

// Copies beside its place and renames, so that nobody finds half of it, also after the power was lost. False when the
// place is taken.
Result<bool> PlaceVersion(const fs::path& file, const fs::path& folder) {
  const fs::path aside = Aside(folder);
  std::error_code ec;
  if (fs::exists(folder, ec)) return false;
  fs::remove_all(aside, ec);
  fs::create_directory(aside, ec);
  if (!ec) fs::copy_file(file, aside / "model.onnx", ec);
  if (!ec) ec = Flush(aside / "model.onnx");
  if (!ec) ec = Flush(aside);
  if (!ec) ec = RenameToNew(aside, folder);
  if (!ec) {
    (void)Flush(folder.parent_path());  // It is there; whether it outlasts the power does not undo that.
    return true;
  }
  const std::error_code failed = ec;
  fs::remove_all(aside, ec);
  if (failed == std::errc::directory_not_empty || failed == std::errc::file_exists) return false;
  return Fail(ErrorCode::kInternal, "the version cannot be written to '{}': {}", folder.string(), failed.message());
}

// 0 when there is none.
std::int64_t NewestOf(const repository::ModelFolder& folder) {
  const std::vector<std::int64_t> versions = folder.VersionNumbers();
  return versions.empty() ? 0 : std::ranges::max(versions);
}

bool Holds(const repository::ModelFolder& folder, std::int64_t version, const fs::path& file) {
  return version > 0 && SameBytes(file, folder.folder / std::to_string(version) / "model.onnx");
}

}  // namespace

bool SameBytes(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  const std::uintmax_t size = fs::file_size(a, ec);
  if (ec || fs::file_size(b, ec) != size || ec) return false;
  std::ifstream one(a, std::ios::binary);
  std::ifstream two(b, std::ios::binary);
  std::array<char, 64 * 1024> left;
  std::array<char, 64 * 1024> right;
  for (std::uintmax_t done = 0; done < size;) {
    const auto part = static_cast<std::streamsize>(std::min<std::uintmax_t>(left.size(), size - done));
    if (!one.read(left.data(), part) || !two.read(right.data(), part)) return false;
    if (!std::equal(left.begin(), left.begin() + part, right.begin())) return false;
    done += static_cast<std::uintmax_t>(part);
  }
  return true;
}

Result<fs::path> Publisher::ServedFile(const std::string& model) const {
  TANDEM_ASSIGN(const auto served, repository_.Find(model, ""));
  TANDEM_ASSIGN(const auto config, repository_.Config(model, served->version_text()));
  TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(roots_, model));
  TANDEM_ASSIGN(repository::ModelFile file,
                repository::FindModelFile(folder, served->version(), config->default_model_filename()));
  return std::move(file.path);
}

Status Publisher::Serve(const std::string& model, const std::string& version) {
  const Status reloaded = repository_.Reload(model);
  // Another version may be at fault.
  if (repository_.IsReady(model, version)) return {};
  TANDEM_TRY(reloaded);
  return Fail(ErrorCode::kConflict, "{}", WhyNot(repository_, model, version));
}

Result<PublishedVersion> Publisher::Publish(const std::string& model, const fs::path& file,
                                            const std::optional<HeadSpec>& head) {
  const auto succession = repository_.TrySuccessor(model, file);
  if (!succession) {
    const ErrorCode code = succession.error().code;
    const bool absent = code == ErrorCode::kUnavailable || code == ErrorCode::kNotFound;
    return Fail(absent ? code : ErrorCode::kConflict, "the trained model cannot take the place of '{}': {}", model,
                succession.error().message);
  }
  TANDEM_ASSIGN(std::string note, CheckSuccession(*succession, head));
  for (int attempt = 0; attempt < kPlaces; ++attempt) {
    TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(roots_, model));
    const std::int64_t newest = NewestOf(folder);
    const bool there = Holds(folder, newest, file);
    std::string version = std::to_string(there ? newest : newest + 1);
    const fs::path place = folder.folder / version;
    if (!there) {
      TANDEM_ASSIGN(const bool placed, PlaceVersion(file, place));
      if (!placed) continue;
    }
    const Status served = Serve(model, version);
    if (served) return PublishedVersion{.version = std::move(version), .note = std::move(note)};
    std::error_code ec;
    fs::remove_all(place, ec);
    (void)repository_.Reload(model);
    return Fail(ErrorCode::kConflict, "version {} of '{}' is not served and was taken back: {}", version, model,
                served.error().message);
  }
  return Fail(ErrorCode::kConflict, "others add versions of '{}' faster than this one could be", model);
}

bool Publisher::IsNewest(const std::string& model, const fs::path& file) const {
  const auto folder = repository::FindModelFolder(roots_, model);
  return folder && Holds(*folder, NewestOf(*folder), file);
}

Status Publisher::RollBack(const std::string& model, const std::string& version, const fs::path& file) {
  TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(roots_, model));
  const fs::path place = folder.folder / version;
  std::error_code ec;
  if (!SameBytes(file, place / "model.onnx")) return repository_.Reload(model);
  if (folder.versions.size() < 2) {
    return Fail(ErrorCode::kConflict, "version {} is the only one of '{}'", version, model);
  }
  const fs::path aside = Aside(place);
  fs::remove_all(aside, ec);
  fs::rename(place, aside, ec);
  if (ec) {
    return Fail(ErrorCode::kInternal, "version {} of '{}' cannot be taken out: {}", version, model, ec.message());
  }
  const Status reloaded = repository_.Reload(model);
  const bool served = repository_.IsReady(model, "") && !repository_.IsReady(model, version);
  if (!reloaded || !served) {
    fs::rename(aside, place, ec);
    (void)repository_.Reload(model);
    return Fail(ErrorCode::kConflict, "version {} of '{}' stays: without it {}", version, model,
                reloaded ? "no version would be served" : reloaded.error().message);
  }
  fs::remove_all(aside, ec);  // The job has the same file.
  return {};
}

}  // namespace tandem::jobs
