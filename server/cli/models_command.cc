#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include <json/writer.h>

#include "server/cli/api_client.h"
#include "server/cli/command.h"

namespace tandem::cli {
namespace {

struct ModelsOptions {
  ClientOptions client;
  std::string model;
  bool json = false;
};

std::string Pretty(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "  ";
  builder["emitUTF8"] = true;
  return Json::writeString(builder, value);
}

void PrintIndex(const Json::Value& index) {
  std::size_t width = 5;
  for (const Json::Value& entry : index) width = std::max(width, entry["name"].asString().size());
  std::printf("%-*s  %7s  %-11s  %s\n", static_cast<int>(width), "MODEL", "VERSION", "STATE", "REASON");
  for (const Json::Value& entry : index) {
    std::printf("%-*s  %7s  %-11s  %s\n", static_cast<int>(width), entry["name"].asCString(),
                entry.get("version", "-").asCString(), entry["state"].asCString(), entry["reason"].asCString());
  }
}

void PrintTensors(const char* title, const Json::Value& tensors) {
  std::printf("%s\n", title);
  for (const Json::Value& tensor : tensors) {
    std::string shape;
    for (const Json::Value& dim : tensor["shape"]) shape += (shape.empty() ? "" : ",") + dim.asString();
    std::printf("  %-24s %-6s [%s]\n", tensor["name"].asCString(), tensor["datatype"].asCString(), shape.c_str());
  }
}

Status List(ApiClient& client, const ModelsOptions& options) {
  TANDEM_ASSIGN(const Json::Value index, client.Post("/v2/repository/index", ""));
  options.json ? void(std::puts(Pretty(index).c_str())) : PrintIndex(index);
  return {};
}

Status Show(ApiClient& client, const ModelsOptions& options) {
  const std::string path = "/v2/models/" + PathSegment(options.model);
  TANDEM_ASSIGN(Json::Value metadata, client.Get(path));
  if (options.json) {
    TANDEM_ASSIGN(metadata["config"], client.Get(path + "/config"));
    std::puts(Pretty(metadata).c_str());
    return {};
  }
  std::string versions;
  for (const Json::Value& version : metadata["versions"])
    versions += (versions.empty() ? "" : ", ") + version.asString();
  std::printf("%s (%s), versions: %s\n", metadata["name"].asCString(), metadata["platform"].asCString(),
              versions.c_str());
  PrintTensors("inputs", metadata["inputs"]);
  PrintTensors("outputs", metadata["outputs"]);
  return {};
}

// In JSON: what the index says of the model afterwards, as `list --json` does.
Status Change(ApiClient& client, const ModelsOptions& options, const char* what) {
  TANDEM_TRY(client.Post("/v2/repository/models/" + PathSegment(options.model) + "/" + what, "{}"));
  if (!options.json) {
    std::printf("%s: %sed\n", options.model.c_str(), what);
    return {};
  }
  TANDEM_ASSIGN(const Json::Value index, client.Post("/v2/repository/index", ""));
  Json::Value entries(Json::arrayValue);
  for (const Json::Value& entry : index) {
    if (entry["name"].asString() == options.model) entries.append(entry);
  }
  std::puts(Pretty(entries).c_str());
  return {};
}

using Action = std::function<Status(ApiClient&, const ModelsOptions&)>;

int Run(const ModelsOptions& options, const Action& action) {
  auto client = ApiClient::Connect(options.client);
  const Status done = client ? action(**client, options) : Status(std::unexpected(client.error()));
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
