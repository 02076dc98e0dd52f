#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "api/base/format.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/op_profile_text.h"
#include "server/cli/pretty_json.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {
namespace {

struct ProfileOptions {
  ClientOptions client;
  std::int64_t job = 0;
  std::size_t top = 20;
  std::string flame;
  bool json = false;
};

Status WriteFlameGraph(const OpProfileView& profile, const ProfileOptions& options) {
  std::ofstream out(options.flame, std::ios::binary);
  out << FlameGraph(profile, Format("Job {}: {:.2f} s of operators", options.job, profile.total_ms / 1e3));
  out.close();
  if (!out) return Fail(ErrorCode::kInternal, "--flame: '{}' cannot be written", options.flame);
  std::fprintf(stderr, "%s: open it in a browser; point at a frame to read it\n", options.flame.c_str());
  return {};
}

Result<int> Profile(const ProfileOptions& options) {
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  TANDEM_ASSIGN(const Json::Value answer, client->Get(Format("/v2/train/jobs/{}/profile", options.job)));
  TANDEM_ASSIGN(const OpProfileView profile, ReadOpProfile(answer));
  if (!options.flame.empty()) TANDEM_TRY(WriteFlameGraph(profile, options));
  std::fputs((options.json ? PrettyJson(answer) + "\n" : OpProfileTable(profile, options.top)).c_str(), stdout);
  return kDone;
}

}  // namespace

void AddProfileCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("profile", "What the operators of a training job take, and which are heavy");
  auto options = std::make_shared<ProfileOptions>();
  command->add_option("job", options->job, "The number of the job")->required()->check(CLI::PositiveNumber);
  command->add_option("--top", options->top, "Show so many operators")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--flame", options->flame, "Also write a flame graph, as SVG, to this file");
  command->add_flag("--json", options->json, "Print JSON");
  AddClientFlags(*command, options->client);
  command->footer("Examples:\n  tandem profile 7\n  tandem profile 7 --top 50 --flame job7.svg");
  command->callback([options, &exit_code] {
    const Result<int> done = Profile(*options);
    exit_code = done ? *done : UsageOr(done.error(), kFailed);
    if (!done) std::fprintf(stderr, "tandem profile: %s\n", PrintableLines(done.error().message).c_str());
  });
}

}  // namespace tandem::cli
