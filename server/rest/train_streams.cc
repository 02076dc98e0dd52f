#include "server/rest/train_streams.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "server/http/response.h"
#include "server/jobs/job_state.h"
#include "server/rest/train_json.h"

namespace tandem::rest {
namespace {

using jobs::JobService;

// A client that has so much unread gets no more for now.
constexpr std::size_t kMostUnread = 256 * 1024;
constexpr int kEventsAtOnce = 200;
constexpr std::size_t kModelPiece = 128 * 1024;
// Others wait for the jobs thread, too.
constexpr int kMostPiecesOfATurn = 8;
// Until a stream that has more to give has its next turn, and one that waits for something to happen.
constexpr std::chrono::milliseconds kSoon{5};
constexpr std::chrono::milliseconds kTick{1'000};
// Proxies and clients give up on a connection that is silent for long.
constexpr std::chrono::seconds kSignOfLife{15};

// What all kinds of stream have in common. Jobs thread only.
class Stream {
 public:
  Stream(JobService& jobs, std::shared_ptr<http::Exchange> exchange, http::Response head)
      : jobs_(jobs), exchange_(std::move(exchange)), head_(std::move(head)) {}
  virtual ~Stream() = default;

  JobService::NextTurn Turn() {
    for (int i = 0; i < kMostPiecesOfATurn; ++i) {
      if (exchange_->cancel()->cancelled()) return {};
      if (begun_ && exchange_->PendingBytes() > kMostUnread) return wait_ = std::min(wait_ * 2, kTick);
      wait_ = kSoon;
      const Result<Next> next = Continue();
      if (!next) return Break(next.error());
      Begin();  // Those who wait want to know that they are heard.
      if (*next == Next::kEnd) {
        exchange_->End();
        return {};
      }
      if (*next == Next::kWait) return kTick;
    }
    return kSoon;
  }

 protected:
  enum class Next : std::uint8_t { kMore, kWait, kEnd };  // kWait: there is no more for now.

  // Writes a piece of what there is.
  virtual Result<Next> Continue() = 0;
  // Whether what was sent is of use when the rest cannot be had; else the client gets a cut connection.
  [[nodiscard]] virtual bool UsefulInPart() const { return true; }

  void Write(std::string text) {
    if (text.empty()) return;
    Begin();
    exchange_->Write(std::move(text));
    written_at_ = jobs_.clock().Now();
  }
  [[nodiscard]] bool SilentForLong() const { return begun_ && jobs_.clock().Now() - written_at_ >= kSignOfLife; }

  JobService& jobs_;

 private:
  void Begin() {
    if (std::exchange(begun_, true)) return;
    exchange_->BeginStream(std::move(head_));
    written_at_ = jobs_.clock().Now();
  }

  // An exchange that is let go amid a stream cuts the connection.
  JobService::NextTurn Break(const Error& error) {
    if (!begun_) {
      exchange_->Respond(http::ErrorResponse(error));
    } else if (UsefulInPart()) {
      exchange_->End();
    }
    return {};
  }

  const std::shared_ptr<http::Exchange> exchange_;  // Shared: whoever answers keeps it.
  http::Response head_;                             // Until it has begun.
  bool begun_ = false;
  std::chrono::milliseconds wait_ = kSoon;  // Grows while the client does not read.
  MonotonicTime written_at_;
};

http::Response Head(const char* content_type) {
  http::Response head;
  head.content_type = content_type;
  head.headers.emplace_back("Cache-Control", "no-cache");
  return head;
}

class LogStream final : public Stream {
 public:
  LogStream(JobService& jobs, const LogRequest& request, std::shared_ptr<http::Exchange> exchange)
      : Stream(jobs, std::move(exchange), Head("text/plain; charset=utf-8")), request_(request) {}

 private:
  Result<Next> Continue() override {
    TANDEM_ASSIGN(jobs::LogPiece piece, jobs_.LogNow(request_.job, request_.offset));
    const bool at_end = piece.text.size() < JobService::kMaxLogPiece;
    request_.offset = piece.next;
    Write(std::move(piece.text));
    if (request_.follow ? piece.ended : at_end) return Next::kEnd;
    return at_end ? Next::kWait : Next::kMore;
  }

  LogRequest request_;
};

class EventStream final : public Stream {
 public:
  EventStream(JobService& jobs, const EventRequest& request, std::shared_ptr<http::Exchange> exchange)
      : Stream(jobs, std::move(exchange), Head("text/event-stream")), request_(request) {}

 private:
  Result<Next> Continue() override {
    // Before its events are read: what it did last is then among them.
    bool ended = false;
    if (request_.job) {
      TANDEM_ASSIGN(const jobs::JobRecord job, jobs_.GetNow(*request_.job));
      ended = HasEnded(job.state);
    }
    TANDEM_ASSIGN(const std::vector<jobs::JobEvent> events,
                  jobs_.EventsNow(request_.job, request_.after, kEventsAtOnce));
    std::string text;
    for (const jobs::JobEvent& event : events) {
      text += EventToSse(event);
      request_.after = event.sequence;
    }
    const bool all = events.size() < static_cast<std::size_t>(kEventsAtOnce);
    if (text.empty() && SilentForLong()) text = ": still here\n\n";
    Write(std::move(text));
    if (!all) return Next::kMore;
    return request_.follow && !ended ? Next::kWait : Next::kEnd;
  }

  EventRequest request_;
};

http::Response ModelHead(jobs::JobId job) {
  http::Response head = Head("application/octet-stream");
  head.headers.emplace_back("Content-Disposition", Format("attachment; filename=\"job-{}.onnx\"", job));
  return head;
}

class ModelStream final : public Stream {
 public:
  ModelStream(JobService& jobs, jobs::JobId job, std::shared_ptr<http::Exchange> exchange)
      : Stream(jobs, std::move(exchange), ModelHead(job)), job_(job) {}

 private:
  Result<Next> Continue() override {
    if (!file_.is_open()) TANDEM_TRY(Open());
    std::string piece(static_cast<std::size_t>(std::min<std::uintmax_t>(kModelPiece, left_)), '\0');
    if (!file_.read(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      return Fail(ErrorCode::kInternal, "the trained model of job {} cannot be read", job_);
    }
    left_ -= piece.size();
    Write(std::move(piece));
    return left_ == 0 ? Next::kEnd : Next::kMore;
  }
  [[nodiscard]] bool UsefulInPart() const override { return false; }

  Status Open() {
    TANDEM_ASSIGN(const std::filesystem::path path, jobs_.ModelNow(job_));
    std::error_code ec;
    left_ = std::filesystem::file_size(path, ec);
    if (!ec) file_.open(path, std::ios::binary);
    if (!ec && file_.is_open()) return {};
    return Fail(ErrorCode::kInternal, "the trained model of job {} cannot be opened", job_);
  }

  const jobs::JobId job_;
  std::ifstream file_;
  std::uintmax_t left_ = 0;  // Of the file, unsent.
};

void Start(JobService& jobs, const std::shared_ptr<http::Exchange>& exchange, std::unique_ptr<Stream> stream) {
  if (jobs.Follow([stream = std::move(stream)] { return stream->Turn(); })) return;
  exchange->Respond(http::ErrorResponse({ErrorCode::kUnavailable, "too many clients follow jobs already"}));
}

}  // namespace

void StreamLog(JobService& jobs, const LogRequest& request, std::shared_ptr<http::Exchange> exchange) {
  Start(jobs, exchange, std::make_unique<LogStream>(jobs, request, exchange));
}

void StreamEvents(JobService& jobs, const EventRequest& request, std::shared_ptr<http::Exchange> exchange) {
  Start(jobs, exchange, std::make_unique<EventStream>(jobs, request, exchange));
}

void StreamModel(JobService& jobs, jobs::JobId job, std::shared_ptr<http::Exchange> exchange) {
  Start(jobs, exchange, std::make_unique<ModelStream>(jobs, job, exchange));
}

}  // namespace tandem::rest
