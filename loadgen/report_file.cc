#include "loadgen/report_file.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::loadgen {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> CannotWrite(const fs::path& file, int error) {
  return Fail(ErrorCode::kInvalidArgument, "'{}' cannot be written: {}", file.string(), std::strerror(error));
}

// Where the text really goes, and the folder that a file is made in.
struct Place {
  fs::path target;
  fs::path folder;
  bool exists = false;
  bool regular = true;
};

Result<Place> Find(const fs::path& file) {
  constexpr int kMostLinks = 40;
  std::error_code ec;
  Place place{.target = file, .folder = {}};
  // Also a link whose target is yet to be made.
  for (int links = 0; fs::is_symlink(fs::symlink_status(place.target, ec)); ++links) {
    if (links == kMostLinks) return CannotWrite(file, ELOOP);
    place.target = place.target.parent_path() / fs::read_symlink(place.target, ec);
    if (ec) return CannotWrite(file, ec.value());
  }
  struct stat about{};
  place.exists = ::stat(file.c_str(), &about) == 0;
  place.regular = !place.exists || S_ISREG(about.st_mode);
  if (!place.regular) place.target = file;
  place.folder = place.target.parent_path().empty() ? fs::path(".") : place.target.parent_path();
  if (place.exists && S_ISDIR(about.st_mode)) return CannotWrite(file, EISDIR);
  return place;
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// True when all of it was written and the descriptor closed without complaint.
bool WriteAndClose(int fd, std::string_view text, bool to_disk) {
  bool good = WriteAll(fd, text) && (!to_disk || ::fsync(fd) == 0);
  const int error = errno;
  good = ::close(fd) == 0 && good;
  if (error != 0) errno = error;
  return good;
}

mode_t ModeFor(const fs::path& file) {
  struct stat about{};
  if (::stat(file.c_str(), &about) == 0) return about.st_mode & 07777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Status CheckReportFile(const fs::path& file) {
  if (file.empty()) return CannotWrite(file, ENOENT);
  TANDEM_ASSIGN(const Place place, Find(file));
  const bool allowed =
      place.exists ? ::access(file.c_str(), W_OK) == 0 : ::access(place.folder.c_str(), W_OK | X_OK) == 0;
  if (!allowed) return CannotWrite(file, errno);
  return {};
}

Status WriteReportFile(const fs::path& file, std::string_view text) {
  TANDEM_TRY(CheckReportFile(file));
  TANDEM_ASSIGN(const Place place, Find(file));
  errno = 0;
  // In a folder that lets nobody make files there is only the file itself.
  if (!place.regular || ::access(place.folder.c_str(), W_OK | X_OK) != 0) {
    const int fd = ::open(place.target.c_str(), O_WRONLY | O_CLOEXEC | (place.regular ? O_TRUNC : 0));
    if (fd < 0 || !WriteAndClose(fd, text, place.regular)) return CannotWrite(file, errno);
    return {};
  }
  std::string aside = place.target.string() + ".XXXXXX";
  const mode_t mode = ModeFor(place.target);
  const int fd = ::mkostemp(aside.data(), O_CLOEXEC);
  if (fd < 0) return CannotWrite(file, errno);
  ::fchmod(fd, mode);
  if (WriteAndClose(fd, text, true) && ::rename(aside.c_str(), place.target.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(aside.c_str());
  return CannotWrite(file, error);
}

}  // namespace tandem::loadgen
