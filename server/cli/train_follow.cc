#include "server/cli/train_follow.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "server/cli/sse_reader.h"
#include "server/cli/train_progress.h"
#include "server/cli/train_text.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kBeforeAskingAgain{1};
// The server gives a sign of life every 15 s among events; a log may be silent for as long as the job is.
constexpr std::chrono::seconds kMaxSilenceOfEvents{60};

// False when whoever reads the output has gone.
bool Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0;
}

Result<bool> HasEnded(ApiClient& client, std::int64_t job) {
  TANDEM_ASSIGN(const Json::Value json, client.Get(Format("/v2/train/jobs/{}", job)));
  TANDEM_ASSIGN(const JobView view, ReadJobView(json));
  return view.has_ended();
}

// Repeats `listen`, which goes on where it stopped, until `over` says that nothing will follow. A server that stops
// ends its streams in good order, so an end alone says nothing.
Status ListenOn(Patience& patience, const std::function<Status()>& listen, const std::function<Result<bool>()>& over) {
  while (true) {
    const Status listened = listen();
    const Result<bool> ended = listened ? over() : Result<bool>(std::unexpected(listened.error()));
    if (ended) {
      patience.Heard();
      if (*ended || std::ferror(stdout) != 0) return {};
    } else if (!patience.Bears(ended.error(), RealClock::Instance().Now())) {
      return std::unexpected(ended.error());
    }
    std::this_thread::sleep_for(kBeforeAskingAgain);
  }
}

}  // namespace

Status PrintLog(ApiClient& client, std::int64_t job, bool follow) {
  std::uint64_t offset = 0;
  Patience patience;
  const auto listen = [&] {
    return client.Listen(Format("/v2/train/jobs/{}/logs?offset={}&follow={}", job, offset, follow),
                         {.headers = {}, .on_piece = [&](std::string_view piece) {
                            patience.Heard();
                            offset += piece.size();
                            return Print(piece);
                          }});
  };
  if (!follow) return listen();
  return ListenOn(patience, listen, [&] { return HasEnded(client, job); });
}

Status PrintEvents(ApiClient& client, const EventsWanted& wanted) {
  const std::string path = wanted.job ? Format("/v2/train/jobs/{}/events", *wanted.job) : "/v2/train/events";
  std::string last_id;
  Patience patience;
  const auto listen = [&]() -> Status {
    SseReader reader;
    Status understood;
    const auto print = [&](const ServerSentEvent& event) -> Result<bool> {
      if (wanted.json) {
        TANDEM_ASSIGN(const Json::Value json, EventJson(event));
        return Print(JsonLine(json) + "\n");
      }
      TANDEM_ASSIGN(const std::string line, EventLine(event));
      return Print(line + "\n");
    };
    const auto hear = [&](std::string_view piece) {
      patience.Heard();
      const auto events = reader.Feed(piece);
      if (!events) understood = std::unexpected(events.error());
      if (!events) return false;
      for (const ServerSentEvent& event : *events) {
        const auto printed = print(event);
        if (!printed) understood = std::unexpected(printed.error());
        if (!printed || !*printed) return false;
        last_id = event.id;
      }
      return true;
    };
    Listening listening{.headers = {}, .max_silence = kMaxSilenceOfEvents, .on_piece = hear};
    if (!last_id.empty()) listening.headers.emplace_back("Last-Event-ID", last_id);
    TANDEM_TRY(client.Listen(Format("{}?follow={}", path, wanted.follow), listening));
    return understood;
  };
  if (!wanted.follow) return listen();
  return ListenOn(patience, listen,
                  [&]() -> Result<bool> { return wanted.job ? HasEnded(client, *wanted.job) : false; });
}

}  // namespace tandem::cli
