#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/infer_inputs.h"
#include "server/cli/model_profile_text.h"
#include "server/cli/op_profile_text.h"
#include "server/cli/pretty_json.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {
namespace {

struct ProfileOptions {
  ClientOptions client;
  std::string what;
  bool job = false;
  bool model = false;
  std::string version;
  std::uint64_t runs = 0;  // 0: as many as the server likes.
  std::vector<std::string> shapes;
  std::size_t top = 20;
  std::string flame;
  bool json = false;
};

Status WriteFlameGraph(const OpProfileView& profile, const std::string& title, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  out << FlameGraph(profile, title);
  out.close();
  if (!out) return Fail(ErrorCode::kInternal, "--flame: '{}' cannot be written", file);
  std::fprintf(stderr, "%s: open it in a browser; point at a frame to read it\n", file.c_str());
  return {};
}

void Print(const ProfileOptions& options, const Json::Value& answer, const std::string& table) {
  std::fputs((options.json ? PrettyJson(answer) + "\n" : table).c_str(), stdout);
}

// What is all digits is a job unless somebody says otherwise.
bool IsJob(const ProfileOptions& options) {
  if (options.job || options.model) return options.job;
  return std::ranges::all_of(options.what, [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::int64_t> JobOf(const ProfileOptions& options) {
  std::int64_t job = 0;
  const char* const end = options.what.data() + options.what.size();
  const auto [stop, error] = std::from_chars(options.what.data(), end, job);
  if (error != std::errc() || stop != end || job < 1) {
    return Invalid("'{}' is no number of a job", options.what);
  }
  if (!options.version.empty() || options.runs > 0 || !options.shapes.empty()) {
    return Invalid("--model-version, --runs and --shape are for models; a job's operators were timed as it ran");
  }
  return job;
}

Result<int> ProfileJob(const ProfileOptions& options) {
  TANDEM_ASSIGN(const std::int64_t job, JobOf(options));
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  TANDEM_ASSIGN(const Json::Value answer, client->Get(Format("/v2/train/jobs/{}/profile", job)));
  TANDEM_ASSIGN(const OpProfileView profile, ReadOpProfile(answer));
  const std::string title = Format("Job {}: {:.2f} s of operators", job, profile.total_ms / 1e3);
  if (!options.flame.empty()) TANDEM_TRY(WriteFlameGraph(profile, title, options.flame));
  Print(options, answer, OpProfileTable(profile, options.top));
  return kDone;
}

Result<std::string> ModelBody(const ProfileOptions& options) {
  TANDEM_ASSIGN(const InferChoices choices, ParseChoices({}, options.shapes));
  Json::Value body(Json::objectValue);
  if (options.runs > 0) body["runs"] = Json::UInt64{options.runs};
  for (const ShapeChoice& choice : choices.shapes) {
    Json::Value& shape = body["shapes"][choice.name] = Json::Value(Json::arrayValue);
    for (const std::int64_t dimension : choice.shape) shape.append(Json::Int64{dimension});
  }
  return JsonLine(body);
}

Result<int> ProfileModel(const ProfileOptions& options) {
  TANDEM_ASSIGN(const std::string body, ModelBody(options));
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  std::string path = "/v2/models/" + loadgen::PathSegment(options.what);
  if (!options.version.empty()) path += "/versions/" + loadgen::PathSegment(options.version);
  TANDEM_ASSIGN(const Json::Value answer, client->Post(path + "/profile", body));
  TANDEM_ASSIGN(const ModelProfileView profile, ReadModelProfile(answer));
  const std::string title = Format("Model {} version {}: {:.2f} ms of operators in {} runs", profile.model,
                                   profile.version, profile.ops.total_ms, profile.runs);
  if (!options.flame.empty()) TANDEM_TRY(WriteFlameGraph(profile.ops, title, options.flame));
  Print(options, answer, ModelProfileTable(profile, options.top));
  return kDone;
}

}  // namespace

void AddProfileCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("profile", "What the operators of a training job or of a served model take");
  auto options = std::make_shared<ProfileOptions>();
  command->add_option("what", options->what, "The number of a job, or the name of a model")->required();
  auto* const job = command->add_flag("--job", options->job, "It is a job");
  command->add_flag("--model", options->model, "It is a model, whose name may be all digits")->excludes(job);
  command->add_option("--model-version", options->version, "Of a model: its version; the newest by default");
  command->add_option("--runs", options->runs, "Of a model: run it so often; 10 by default")
      ->check(CLI::Range(1, 1000));
  command->add_option("--shape", options->shapes, "Of a model: NAME:D,D,…: the shape of an input to run it on");
  command->add_option("--top", options->top, "Show so many operators")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--flame", options->flame, "Also write a flame graph, as SVG, to this file");
  command->add_flag("--json", options->json, "Print JSON");
  AddClientFlags(*command, options->client);
  command->footer(
      "Examples:\n"
      "  tandem profile 7\n"
      "  tandem profile 7 --top 50 --flame job7.svg\n"
      "  tandem profile squeezenet --runs 50\n"
      "  tandem profile bert --shape input_ids:1,128 --flame bert.svg");
  command->callback([options, &exit_code] {
    const Result<int> done = IsJob(*options) ? ProfileJob(*options) : ProfileModel(*options);
    exit_code = done ? *done : UsageOr(done.error(), kFailed);
    if (!done) std::fprintf(stderr, "tandem profile: %s\n", PrintableLines(done.error().message).c_str());
  });
}

}  // namespace tandem::cli
