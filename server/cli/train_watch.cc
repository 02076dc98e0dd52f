#include "server/cli/train_watch.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "server/cli/command.h"
#include "server/cli/sse_reader.h"

namespace tandem::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLook{500};
constexpr milliseconds kTick{50};
// Between two lines in a pipe, unless the state changes.
constexpr seconds kLineEvery{10};
// A model that takes longer to load is published all the same.
constexpr seconds kPublishLimit{60};

// One line that changes on a terminal; in a pipe a line now and then.
class ProgressView {
 public:
  explicit ProgressView(bool quiet) : quiet_(quiet), terminal_(::isatty(STDOUT_FILENO) == 1) {}

  void Update(const JobView& job, MonotonicTime now) {
    rate_.Add(now, job);
    if (quiet_) return;
    // In a pipe nothing is between this and its last line.
    if (!terminal_ && job.has_ended()) return;
    if (!terminal_ && job.state == state_ && now - written_at_ < kLineEvery) return;
    state_ = job.state;
    written_at_ = now;
    const std::string line = ProgressLine(job, rate_.PerSecond(), terminal_ ? Columns() - 1 : 0);
    std::printf(terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stdout);
    in_line_ = terminal_;
  }

  // Ends the line that changes, if there is one.
  void EndLine() {
    if (std::exchange(in_line_, false)) std::puts("");
    std::fflush(stdout);
  }

 private:
  static std::size_t Columns() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
  }

  const bool quiet_;
  const bool terminal_;
  StepRate rate_;
  std::string state_;
  MonotonicTime written_at_;
  bool in_line_ = false;
};

// False when the waiting was interrupted.
bool Wait(const Interruption& interruption) {
  for (milliseconds waited{0}; waited < kLook && !interruption.raised(); waited += kTick) {
    std::this_thread::sleep_for(kTick);
  }
  return !interruption.raised();
}

}  // namespace

Result<std::optional<std::string>> PublishOutcome(ApiClient& client, const JobView& job) {
  if (!job.published_version.empty()) return "";
  SseReader reader;
  std::optional<std::string> outcome;
  Status understood;
  const auto hear = [&](std::string_view piece) {
    const auto events = reader.Feed(piece);
    if (!events) {
      understood = std::unexpected(events.error());
      return false;
    }
    for (const ServerSentEvent& event : *events) {
      if (event.kind != "publish_failed" && event.kind != "not_published") continue;
      const auto data = ParseStrictJson(event.data);
      const bool told = data && data->isObject() && (*data)["body"].isObject() && (*data)["body"]["why"].isString();
      outcome = "not published" + (told ? ": " + PrintableLines((*data)["body"]["why"].asString()) : "");
    }
    return true;
  };
  TANDEM_TRY(client.Listen(Format("/v2/train/jobs/{}/events?follow=false", job.id),
                           {.headers = {}, .max_silence = seconds(60), .on_piece = hear}));
  TANDEM_TRY(understood);
  return outcome;
}

Result<int> WatchJob(ApiClient& client, std::int64_t id, bool quiet, const Interruption& interruption) {
  const Clock& clock = RealClock::Instance();
  ProgressView view(quiet);
  Patience patience;
  std::optional<MonotonicTime> succeeded_at;
  do {
    const auto answer = client.Get(Format("/v2/train/jobs/{}", id));
    if (!answer) {
      if (patience.Bears(answer.error(), clock.Now())) continue;
      view.EndLine();
      return std::unexpected(answer.error());
    }
    patience.Heard();
    TANDEM_ASSIGN(const JobView job, ReadJobView(*answer));
    view.Update(job, clock.Now());
    // Whoever read the output has gone; so may we.
    if (std::ferror(stdout) != 0) return kFailed;
    if (!job.has_ended()) continue;
    std::string outcome;
    if (job.state == "succeeded" && !job.publish.empty() && job.publish != "never") {
      if (!succeeded_at) succeeded_at = clock.Now();
      const auto decided = PublishOutcome(client, job);
      const bool in_vain = clock.Now() - *succeeded_at >= kPublishLimit;
      if (!(decided && *decided) && !in_vain) continue;
      outcome = decided && *decided ? **decided : "not published yet";
    }
    view.EndLine();
    if (!quiet) std::printf("%s\n%s%s", EndLine(job).c_str(), outcome.c_str(), outcome.empty() ? "" : "\n");
    return job.state == "succeeded" ? kDone : kFailed;
  } while (Wait(interruption));
  view.EndLine();
  std::fprintf(stderr,
               "tandem train: no longer watching; job %lld goes on. `tandem train watch %lld` watches it again, "
               "`tandem train cancel %lld` stops it\n",
               static_cast<long long>(id), static_cast<long long>(id), static_cast<long long>(id));
  return interruption.exit_code();
}

}  // namespace tandem::cli
