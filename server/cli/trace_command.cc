#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include <json/value.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/fetch_file.h"
#include "server/cli/pretty_json.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

// The end of a trace, in which the server says how much of the time it knows.
constexpr std::size_t kTail = 512;

struct TraceOptions {
  ClientOptions client;
  std::string request;  // Empty: all that happens for a while.
  double seconds = 5;
  std::string output = "trace.json";
  bool json = false;
};

// A number that the end of a trace tells; `otherwise` when it does not.
double NumberIn(std::string_view tail, std::string_view field, double otherwise) {
  const std::string key = Format(R"("{}":")", field);
  const auto at = tail.rfind(key);
  if (at == std::string_view::npos) return otherwise;
  const std::string_view text = tail.substr(at + key.size());
  double number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Says on stderr what is missing in a trace, if anything is.
void TellWhatIsMissing(std::string_view tail, double asked) {
  const double requests = NumberIn(tail, "left_out_requests", 0);
  const double runs = NumberIn(tail, "left_out_runs", 0);
  const double covered = NumberIn(tail, "covered_seconds", asked);
  if (requests > 0 || runs > 0) {
    std::fprintf(stderr, "%.0f requests and %.0f runs were too many and are left out: ask for less time\n", requests,
                 runs);
  }
  if (covered >= asked - 0.001) return;
  std::fprintf(stderr, "only the last %.1f s are whole%s\n", covered,
               requests > 0 || runs > 0 ? ""
                                        : ": so much was going on that the rest was overwritten; start the server with "
                                          "a larger --trace-records");
}

Status Record(ApiClient& client, const TraceOptions& options) {
  // Before anybody waits in vain.
  TANDEM_TRY(client.Get("/v2/trace?seconds=0.001"));
  std::fprintf(stderr, "recording for %g s\n", options.seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  std::string tail;
  const auto keep_tail = [&](std::string_view piece) {
    tail += piece.substr(piece.size() - std::min(piece.size(), kTail));
    tail.erase(0, tail.size() - std::min(tail.size(), kTail));
  };
  TANDEM_ASSIGN(const std::uint64_t size,
                FetchFile(client, Format("/v2/trace?seconds={:.3f}", options.seconds), options.output, keep_tail));
  TellWhatIsMissing(tail, options.seconds);
  std::fprintf(stderr, "%s: %llu bytes; open it in https://ui.perfetto.dev or chrome://tracing\n",
               options.output.c_str(), static_cast<unsigned long long>(size));
  return {};
}

Status Explain(ApiClient& client, const TraceOptions& options) {
  TANDEM_ASSIGN(const Json::Value story, client.Get("/v2/trace/requests/" + loadgen::PathSegment(options.request)));
  if (!story.isObject() || !story["words"].isArray() || !story["request"].isString() || !story["model"].isString() ||
      !story["id"].isString()) {
    return Fail(ErrorCode::kInternal, "the server's answer is not what a model server gives; is --url right?");
  }
  if (options.json) {
    std::puts(PrettyJson(story).c_str());
    return {};
  }
  std::string title = "request " + story["request"].asString();
  if (const std::string id = story["id"].asString(); !id.empty()) title += Format(" (id '{}')", Excerpt(id));
  if (const std::string model = story["model"].asString(); !model.empty()) title += " of model " + model;
  std::puts(title.c_str());
  for (const Json::Value& line : story["words"]) std::printf("  %s\n", line.asString().c_str());
  return {};
}

int Run(const TraceOptions& options) {
  auto client = ApiClient::Connect(options.client);
  Status done;
  if (!client) {
    done = std::unexpected(client.error());
  } else {
    done = options.request.empty() ? Record(**client, options) : Explain(**client, options);
  }
  if (done) return kDone;
  std::fprintf(stderr, "tandem trace: %s\n", done.error().message.c_str());
  return client ? kFailed : UsageOr(done.error(), kFailed);
}

}  // namespace

void AddTraceCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "trace", "Why a request took so long, or all that a running server does for a while, as a file for Perfetto");
  auto options = std::make_shared<TraceOptions>();
  CLI::Option* request = command->add_option(
      "request", options->request, "A request to explain: the id that its client gave it, or its Tandem-Request");
  command->add_option("--seconds", options->seconds, "For how long")
      ->check(Between(0.1, 3600.0))
      ->capture_default_str()
      ->excludes(request);
  command->add_option("-o,--output", options->output, "Where to")->capture_default_str()->excludes(request);
  command->add_flag("--json", options->json, "Print what is known of the request as JSON")->needs(request);
  AddClientFlags(*command, options->client);
  command->footer(
      "Examples:\n"
      "  tandem trace --seconds 5 -o t.json\n"
      "  tandem trace r-1234\n"
      "  tandem trace my-request --json");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace tandem::cli
