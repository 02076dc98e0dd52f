#include "server/cli/fetch_file.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "api/base/format.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMaxSilence{60};

// Removes the file it was given unless told to keep it.
class Aside {
 public:
  explicit Aside(fs::path path) : path_(std::move(path)) {}
  ~Aside() {
    std::error_code ec;
    if (!path_.empty()) fs::remove(path_, ec);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  void Keep() { path_.clear(); }

 private:
  fs::path path_;
};

std::unexpected<Error> CannotWrite(const fs::path& file, const std::string& why) {
  return Invalid("'{}' cannot be written: {}", file.string(), why);
}

}  // namespace

Result<std::uint64_t> FetchFile(ApiClient& client, const std::string& path, const fs::path& file,
                                const std::function<void(std::string_view)>& on_piece) {
  std::error_code ec;
  const fs::file_type type = fs::status(file, ec).type();
  if (type == fs::file_type::directory) return CannotWrite(file, std::strerror(EISDIR));
  const bool in_place = type != fs::file_type::regular && type != fs::file_type::not_found;
  const fs::path target = in_place ? file : fs::path(Format("{}.{}", file.string(), ::getpid()));
  Aside aside(in_place ? fs::path() : target);
  std::ofstream out(target, std::ios::binary);
  if (!out) return CannotWrite(file, std::strerror(errno));
  std::uint64_t size = 0;
  const auto take = [&](std::string_view piece) {
    size += piece.size();
    if (on_piece) on_piece(piece);
    return static_cast<bool>(out.write(piece.data(), static_cast<std::streamsize>(piece.size())));
  };
  TANDEM_TRY(client.Listen(path, {.headers = {}, .max_silence = kMaxSilence, .on_piece = take}));
  errno = 0;
  if (out) out.close();
  if (!out) return CannotWrite(file, errno != 0 ? std::strerror(errno) : "is the disk full?");
  if (!in_place) fs::rename(target, file, ec);
  if (!in_place && ec) return CannotWrite(file, ec.message());
  aside.Keep();
  return size;
}

}  // namespace tandem::cli
