#include <cstdio>
#include <memory>
#include <string>

#include <json/value.h>

#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/memory_text.h"
#include "server/cli/pretty_json.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {
namespace {

constexpr int kBarColumns = 72;

struct MemoryOptions {
  ClientOptions client;
  bool json = false;
};

Status Show(ApiClient& client, const MemoryOptions& options) {
  TANDEM_ASSIGN(const Json::Value answer, client.Get("/v2/memory"));
  if (options.json) {
    std::puts(PrettyJson(answer).c_str());
    return {};
  }
  TANDEM_ASSIGN(const std::string text, MemoryText(answer, kBarColumns));
  std::fputs(text.c_str(), stdout);
  return {};
}

int Run(const MemoryOptions& options) {
  auto client = ApiClient::Connect(options.client);
  const Status done = client ? Show(**client, options) : std::unexpected(client.error());
  if (done) return kDone;
  std::fprintf(stderr, "tandem memory: %s\n", PrintableLines(done.error().message).c_str());
  return client ? kFailed : UsageOr(done.error(), kFailed);
}

}  // namespace

void AddMemoryCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("memory", "Who has how much of the memory of a running server, and who waits for it");
  auto options = std::make_shared<MemoryOptions>();
  command->add_flag("--json", options->json, "Print JSON");
  AddClientFlags(*command, options->client);
  command->footer(
      "Examples:\n"
      "  tandem memory\n"
      "  tandem memory --json");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace tandem::cli
