#include "loadgen/csv_lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

constexpr std::size_t kPieceBytes = 1 << 18;

std::unexpected<Error> CannotRead(const std::filesystem::path& file, int error) {
  return Invalid("'{}' cannot be read: {}", file.string(), std::strerror(error));
}

// Closes what it was given.
class OpenFile {
 public:
  explicit OpenFile(const std::filesystem::path& file) : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

LineCutter::LineCutter(std::string name, const CsvLimits& limits, LineHandler handler)
    : name_(std::move(name)), limits_(limits), handler_(std::move(handler)) {}

std::unexpected<Error> LineCutter::At(Error error) const {
  error.message = Format("'{}' line {}: {}", name_, line_, error.message);
  return std::unexpected(std::move(error));
}

Status LineCutter::Hand(std::string_view line) {
  if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) {
    return At({ErrorCode::kInvalidArgument, "the file must not start with a byte order mark"});
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (auto handled = handler_(line); !handled) return At(std::move(handled).error());
  ++line_;
  return {};
}

Status LineCutter::Feed(std::string_view piece) {
  bytes_ += piece.size();
  if (bytes_ > limits_.bytes) return Fail(ErrorCode::kTooLarge, "'{}' is larger than {} bytes", name_, limits_.bytes);
  while (!piece.empty()) {
    const std::size_t end = std::min(piece.find('\n'), piece.size());
    if (partial_.size() + end > limits_.line) {
      return At({ErrorCode::kTooLarge, Format("the line is longer than {} bytes", limits_.line)});
    }
    if (end == piece.size()) {
      partial_.append(piece);
      return {};
    }
    if (partial_.empty()) {
      TANDEM_TRY(Hand(piece.substr(0, end)));
    } else {
      partial_.append(piece.substr(0, end));
      TANDEM_TRY(Hand(partial_));
      partial_.clear();
    }
    piece.remove_prefix(end + 1);
  }
  return {};
}

Status LineCutter::End() {
  if (partial_.empty()) return {};
  TANDEM_TRY(Hand(partial_));
  partial_.clear();
  return {};
}

Status ReadLines(std::string_view text, std::string_view name, const CsvLimits& limits, const LineHandler& handler) {
  LineCutter lines(std::string(name), limits, handler);
  TANDEM_TRY(lines.Feed(text));
  return lines.End();
}

Status ReadFileLines(const std::filesystem::path& file, const CsvLimits& limits, const LineHandler& handler) {
  const OpenFile open(file);
  if (open.fd() < 0) return CannotRead(file, errno);
  LineCutter lines(file.string(), limits, handler);
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const ssize_t count = ::read(open.fd(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(file, errno);
    if (count == 0) return lines.End();
    TANDEM_TRY(lines.Feed(std::string_view(piece).substr(0, static_cast<std::size_t>(count))));
  }
}

void SplitFields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (std::size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
}

}  // namespace tandem::loadgen
