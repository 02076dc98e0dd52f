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
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/fetch_file.h"
#include "server/cli/pretty_json.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

// The beginning of a trace, in which the server says how much of the time it knows.
constexpr std::size_t kHead = 512;

struct TraceOptions {
  ClientOptions client;
  std::string request;  // Empty: all that happens for a while.
  double seconds = 5;
  std::string output = "trace.json";
  bool json = false;
};

// The seconds that the head of a trace says it covers; all that were asked for when it says nothing.
double CoveredSeconds(std::string_view head, double asked) {
  constexpr std::string_view kField = R"("covered_seconds":")";
  const auto at = head.find(kField);
  if (at == std::string_view::npos) return asked;
  const std::string_view text = head.substr(at + kField.size());
  double covered = asked;
  std::from_chars(text.data(), text.data() + text.size(), covered);
  return covered;
}

Status Record(ApiClient& client, const TraceOptions& options) {
  // Before anybody waits in vain.
  TANDEM_TRY(client.Get("/v2/trace?seconds=0.001"));
  std::fprintf(stderr, "recording for %g s\n", options.seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  std::string head;
  const auto keep_head = [&](std::string_view piece) {
    if (head.size() < kHead) head += piece.substr(0, kHead - head.size());
  };
  TANDEM_ASSIGN(const std::uint64_t size,
                FetchFile(client, Format("/v2/trace?seconds={:.3f}", options.seconds), options.output, keep_head));
  const double covered = CoveredSeconds(head, options.seconds);
  if (covered < options.seconds - 0.001) {
    std::fprintf(stderr,
                 "only the last %.1f s are in it: so much was going on that the rest was overwritten; start the server "
                 "with a larger --trace-records\n",
                 covered);
  }
  std::fprintf(stderr, "%s: %llu bytes; open it in https://ui.perfetto.dev or chrome://tracing\n",
               options.output.c_str(), static_cast<unsigned long long>(size));
  return {};
}

Status Explain(ApiClient& client, const TraceOptions& options) {
  TANDEM_ASSIGN(const Json::Value story, client.Get("/v2/trace/requests/" + loadgen::PathSegment(options.request)));
  if (!story.isObject() || !story["words"].isArray() || !story["request"].isString() || !story["model"].isString()) {
    return Fail(ErrorCode::kInternal, "the server's answer is not what a model server gives; is --url right?");
  }
  if (options.json) {
    std::puts(PrettyJson(story).c_str());
    return {};
  }
  std::printf("request %s of model %s\n", story["request"].asCString(), story["model"].asString().c_str());
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
