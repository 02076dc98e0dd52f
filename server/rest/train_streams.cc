#include "server/rest/train_streams.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/http/response.h"
#include "server/jobs/job_state.h"
#include "server/rest/train_json.h"

namespace tandem::rest {
namespace {

using jobs::JobService;

// A client that has so much unread gets no more for now.
constexpr std::size_t kMostUnread = 256 * 1024;
constexpr int kEventsAtOnce = 200;
// Proxies and clients give up on a connection that is silent for long.
constexpr std::chrono::seconds kSignOfLife{15};

// What both kinds of stream have in common. Jobs thread only.
class Stream {
 public:
  Stream(JobService& jobs, std::shared_ptr<http::Exchange> exchange, const char* content_type)
      : jobs_(jobs), exchange_(std::move(exchange)), content_type_(content_type) {}
  virtual ~Stream() = default;

  // False when it is over.
  bool Turn() {
    if (exchange_->cancel()->cancelled()) return false;
    if (begun_ && exchange_->PendingBytes() > kMostUnread) return true;
    const Result<bool> more = Continue();
    if (!more) {
      begun_ ? exchange_->End() : exchange_->Respond(http::ErrorResponse(more.error()));
      return false;
    }
    Begin();  // Those who wait want to know that they are heard.
    if (!*more) exchange_->End();
    return *more;
  }

 protected:
  // Writes what there is; false when nothing will follow.
  virtual Result<bool> Continue() = 0;

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
    http::Response head;
    head.content_type = content_type_;
    head.headers.emplace_back("Cache-Control", "no-cache");
    exchange_->BeginStream(std::move(head));
    written_at_ = jobs_.clock().Now();
  }

  const std::shared_ptr<http::Exchange> exchange_;  // Shared: whoever answers keeps it.
  const char* const content_type_;
  bool begun_ = false;
  MonotonicTime written_at_{};
};

class LogStream final : public Stream {
 public:
  LogStream(JobService& jobs, const LogRequest& request, std::shared_ptr<http::Exchange> exchange)
      : Stream(jobs, std::move(exchange), "text/plain; charset=utf-8"), request_(request) {}

 private:
  Result<bool> Continue() override {
    TANDEM_ASSIGN(jobs::LogPiece piece, jobs_.LogNow(request_.job, request_.offset));
    const bool at_end = piece.text.size() < JobService::kMaxLogPiece;
    request_.offset = piece.next;
    Write(std::move(piece.text));
    return request_.follow ? !piece.ended : !at_end;
  }

  LogRequest request_;
};

class EventStream final : public Stream {
 public:
  EventStream(JobService& jobs, const EventRequest& request, std::shared_ptr<http::Exchange> exchange)
      : Stream(jobs, std::move(exchange), "text/event-stream"), request_(request) {}

 private:
  Result<bool> Continue() override {
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
    return !all || (request_.follow && !ended);
  }

  EventRequest request_;
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

}  // namespace tandem::rest
