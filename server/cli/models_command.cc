#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include <json/value.h>

#include "api/base/format.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/pretty_json.h"

namespace tandem::cli {
namespace {

struct ModelsOptions {
  ClientOptions client;
  std::string model;
  bool json = false;
};

// Of an entry that CheckIndex has seen.
std::string TextOf(const Json::Value& entry, const char* key, const char* otherwise = "") {
  return entry.get(key, otherwise).asString();
}

Error NotUnderstood() {
  return {ErrorCode::kInternal, "the server's answer is not what a model server gives; is --url right?"};
}

// Whatever answers, only what an index of models looks like is taken for one.
Status CheckIndex(const Json::Value& index) {
  if (!index.isArray()) return std::unexpected(NotUnderstood());
  for (const Json::Value& entry : index) {
    if (!entry.isObject() || !entry.isMember("name")) return std::unexpected(NotUnderstood());
    for (const char* key : {"name", "version", "state", "reason"}) {
      if (entry.isMember(key) && !entry[key].isString()) return std::unexpected(NotUnderstood());
    }
    if (entry.isMember("parameters") && !entry["parameters"].isObject()) return std::unexpected(NotUnderstood());
  }
  return {};
}

// "job 7" for a version that a training job has published.
std::string OriginText(const Json::Value& entry) {
  const Json::Value& job = entry["parameters"]["tandem.job"];
  return job.isString() ? "job " + job.asString() : "-";
}

void PrintIndex(const Json::Value& index) {
  std::size_t name = 5;
  std::size_t origin = 4;
  for (const Json::Value& entry : index) {
    name = std::max(name, TextOf(entry, "name").size());
    origin = std::max(origin, OriginText(entry).size());
  }
  const auto print = [&](const std::string& model, const std::string& version, const std::string& state,
                         const std::string& from, const std::string& reason) {
    std::printf("%-*s  %7s  %-11s  %-*s  %s\n", static_cast<int>(name), model.c_str(), version.c_str(), state.c_str(),
                static_cast<int>(origin), from.c_str(), reason.c_str());
  };
  print("MODEL", "VERSION", "STATE", "FROM", "REASON");
  for (const Json::Value& entry : index) {
    print(TextOf(entry, "name"), TextOf(entry, "version", "-"), TextOf(entry, "state"), OriginText(entry),
          TextOf(entry, "reason"));
  }
}

std::string TensorLines(const char* title, const Json::Value& tensors) {
  std::string lines = std::string(title) + "\n";
  for (const Json::Value& tensor : tensors) {
    std::string shape;
    for (const Json::Value& dim : tensor["shape"]) shape += (shape.empty() ? "" : ",") + dim.asString();
    lines += Format("  {:<24} {:<6} [{}]\n", tensor["name"].asString(), tensor["datatype"].asString(), shape);
  }
  return lines;
}

Status List(ApiClient& client, const ModelsOptions& options) {
  TANDEM_ASSIGN(const Json::Value index, client.Post("/v2/repository/index", ""));
  TANDEM_TRY(CheckIndex(index));
  options.json ? void(std::puts(PrettyJson(index).c_str())) : PrintIndex(index);
  return {};
}

Status Show(ApiClient& client, const ModelsOptions& options) {
  const std::string path = "/v2/models/" + loadgen::PathSegment(options.model);
  TANDEM_ASSIGN(Json::Value metadata, client.Get(path));
  if (!metadata.isObject() || !metadata["name"].isString() || !metadata["inputs"].isArray() ||
      !metadata["outputs"].isArray()) {
    return std::unexpected(NotUnderstood());
  }
  if (options.json) {
    TANDEM_ASSIGN(metadata["config"], client.Get(path + "/config"));
    std::puts(PrettyJson(metadata).c_str());
    return {};
  }
  std::string versions;
  for (const Json::Value& version : metadata["versions"])
    versions += (versions.empty() ? "" : ", ") + version.asString();
  const std::string head =
      Format("{} ({}), versions: {}\n", metadata["name"].asString(), metadata["platform"].asString(), versions);
  std::fputs((head + TensorLines("inputs", metadata["inputs"]) + TensorLines("outputs", metadata["outputs"])).c_str(),
             stdout);
  return {};
}

// In JSON: what the index says of the model afterwards, as `list --json` does.
Status Change(ApiClient& client, const ModelsOptions& options, const char* what) {
  TANDEM_TRY(client.Post("/v2/repository/models/" + loadgen::PathSegment(options.model) + "/" + what, "{}"));
  if (!options.json) {
    std::printf("%s: %sed\n", options.model.c_str(), what);
    return {};
  }
  TANDEM_ASSIGN(const Json::Value index, client.Post("/v2/repository/index", ""));
  TANDEM_TRY(CheckIndex(index));
  Json::Value entries(Json::arrayValue);
  for (const Json::Value& entry : index) {
    if (entry["name"].asString() == options.model) entries.append(entry);
  }
  std::puts(PrettyJson(entries).c_str());
  return {};
}

using Action = std::function<Status(ApiClient&, const ModelsOptions&)>;

// An answer of another form than asked for is an exception of JsonCpp's.
Status Try(const Action& action, ApiClient& client, const ModelsOptions& options) {
  try {
    return action(client, options);
  } catch (const Json::Exception&) {
    return std::unexpected(NotUnderstood());
  }
}

int Run(const ModelsOptions& options, const Action& action) {
  auto client = ApiClient::Connect(options.client);
  const Status done = client ? Try(action, **client, options) : Status(std::unexpected(client.error()));
  if (done) return kDone;
  std::fprintf(stderr, "tandem models: %s\n", done.error().message.c_str());
  return client ? kFailed : UsageOr(done.error(), kFailed);
}

}  // namespace

void AddModelsCommand(CLI::App& app, int& exit_code) {
  CLI::App* models = app.add_subcommand("models", "List, show, load and unload the models of a running server");
  models->require_subcommand(1);
  models->footer(
      "Examples:\n"
      "  tandem models list\n"
      "  tandem models show squeezenet --json\n"
      "  tandem models load squeezenet      (a server in explicit mode)");
  const auto add = [&](const char* name, const char* help, const char* examples, bool named, Action action) {
    CLI::App* command = models->add_subcommand(name, help);
    auto options = std::make_shared<ModelsOptions>();
    if (named) command->add_option("model", options->model, "The model")->required();
    command->add_flag("--json", options->json, "Print JSON");
    AddClientFlags(*command, options->client);
    command->footer(std::string("Examples:\n") + examples);
    command->callback([options, action = std::move(action), &exit_code] { exit_code = Run(*options, action); });
  };
  add("list", "The models of the repository and their state",
      "  tandem models list\n  tandem models list --json --url http://127.0.0.1:8000", false, List);
  add("show", "Inputs, outputs and versions of a model",
      "  tandem models show squeezenet\n  tandem models show squeezenet --json      (with its configuration)", true,
      Show);
  add("load", "Load or reload a model (a server in explicit mode)",
      "  tandem models load squeezenet\n  tandem models load squeezenet --json      (its state afterwards)", true,
      [](ApiClient& client, const ModelsOptions& options) { return Change(client, options, "load"); });
  add("unload", "Unload a model (a server in explicit mode)",
      "  tandem models unload squeezenet\n  tandem models unload squeezenet --json    (its state afterwards)", true,
      [](ApiClient& client, const ModelsOptions& options) { return Change(client, options, "unload"); });
}

}  // namespace tandem::cli
