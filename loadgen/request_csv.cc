#include "loadgen/request_csv.h"

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kBlock = 256 << 10;

// RFC 4180: quotes around whatever would be read as something else.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string Seconds(MonotonicTime time, MonotonicTime start) {
  if (time == MonotonicTime{}) return "";
  return Format("{:.9f}", static_cast<double>((time - start).count()) / 1e9);
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: return "ok";
    case Outcome::kLate: return "late";
    case Outcome::kRejected: return "rejected";
    case Outcome::kFailed: return "failed";
  }
  return "unknown";
}

Result<std::unique_ptr<RequestCsv>> RequestCsv::Create(const std::filesystem::path& file,
                                                       std::vector<std::string> models) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return Invalid("'{}' cannot be written: {}", file.string(), std::strerror(errno));
  return std::unique_ptr<RequestCsv>(new RequestCsv(file, fd, std::move(models)));
}

RequestCsv::RequestCsv(std::filesystem::path file, int fd, std::vector<std::string> models)
    : file_(std::move(file)), models_(std::move(models)), fd_(fd) {
  text_ = "model,scheduled_s,sent_s,first_byte_s,done_s,outcome,status,latency_ms,bytes,warmup,batch,reason\n";
}

RequestCsv::~RequestCsv() {
  if (fd_ >= 0) ::close(fd_);
}

void RequestCsv::Add(const JudgedRequest& request) {
  if (error_ != 0) return;
  const RequestRecord& r = request.record;
  const MonotonicTime start = request.start;
  AppendFormat(text_, "{},{},{},{},{},{},{},{:.6f},{},{},{},{}\n", Quoted(models_[request.model]),
               Seconds(r.scheduled, start), Seconds(r.sent, start), Seconds(r.first_byte, start),
               Seconds(r.done, start), OutcomeName(request.outcome), r.status,
               static_cast<double>(request.latency.count()) / 1e6, r.bytes, request.warmup ? 1 : 0, request.batch,
               request.reason);
  if (text_.size() >= kBlock) Flush();
}

void RequestCsv::Flush() {
  std::string_view rest = text_;
  while (!rest.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written > 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno == 0 ? EIO : errno;
    }
  }
  text_.clear();
}

Status RequestCsv::Close() {
  Flush();
  if (::close(std::exchange(fd_, -1)) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return {};
  return Fail(ErrorCode::kUnavailable, "'{}' is not complete: {}", file_.string(), std::strerror(error_));
}

}  // namespace tandem::loadgen
