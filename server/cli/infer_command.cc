#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <json/writer.h>

#include "api/wire/json_text.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/infer_inputs.h"

namespace tandem::cli {
namespace {

struct InferOptions {
  ClientOptions client;
  std::string model;
  std::string version;
  std::vector<std::string> inputs;
  std::vector<std::string> shapes;
  std::vector<std::string> outputs;
  unsigned top = 0;
  double slo_ms = 0;
  unsigned seed = 0;
  bool json = false;
};

constexpr Json::ArrayIndex kShownValues = 8;

// The request in binary form: JSON that describes the inputs, then their bytes.
struct Message {
  std::string json;
  std::string bytes;
};

Message BuildMessage(const std::vector<Tensor>& inputs, const std::vector<std::string>& outputs, unsigned top) {
  Message message;
  message.json = R"({"inputs":[)";
  for (const Tensor& input : inputs) {
    if (&input != &inputs.front()) message.json += ',';
    message.json +=
        std::format(R"({{"name":{},"datatype":"{}","shape":{},"parameters":{{"binary_data_size":{}}}}})",
                    JsonString(input.name), DataTypeName(input.type), ShapeText(input.shape), input.data.size());
    message.bytes.append(reinterpret_cast<const char*>(input.data.view.data()), input.data.size());
  }
  message.json += R"(],"outputs":[)";
  for (const std::string& output : outputs) {
    if (&output != &outputs.front()) message.json += ',';
    message.json += std::format(R"({{"name":{},"parameters":{{"binary_data":false)", JsonString(output));
    if (top > 0) message.json += std::format(R"(,"classification":{})", top);
    message.json += "}}";
  }
  message.json += "]}";
  return message;
}

void PrintOutput(const Json::Value& output) {
  std::string shape;
  for (const Json::Value& dim : output["shape"]) shape += (shape.empty() ? "" : ",") + dim.asString();
  std::printf("%s %s [%s]\n ", output["name"].asCString(), output["datatype"].asCString(), shape.c_str());
  const Json::Value& data = output["data"];
  const bool text = output["datatype"].asString() == "BYTES";
  for (Json::ArrayIndex i = 0; i < data.size() && (text || i < kShownValues); ++i) {
    std::printf("%s%s", text ? (i > 0 ? "\n  " : " ") : " ", data[i].asCString());
  }
  if (!text && data.size() > kShownValues) std::printf(" … (%u values)", data.size());
  std::printf("\n");
}

void Print(const Json::Value& answer, double milliseconds, bool json) {
  if (json) {
    Json::StreamWriterBuilder builder;
    builder["indentation"] = "  ";
    builder["useSpecialFloats"] = true;
    std::puts(Json::writeString(builder, answer).c_str());
    return;
  }
  std::printf("%s version %s answered in %.2f ms\n", answer["model_name"].asCString(),
              answer["model_version"].asCString(), milliseconds);
  for (Json::Value output : answer["outputs"]) {
    for (Json::Value& value : output["data"]) value = value.asString();
    PrintOutput(output);
  }
}

Status Infer(const InferOptions& options) {
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  std::string path = "/v2/models/" + PathSegment(options.model);
  if (!options.version.empty()) path += "/versions/" + PathSegment(options.version);
  TANDEM_ASSIGN(const Json::Value metadata, client->Get(path));
  TANDEM_ASSIGN(const ModelSignature signature, SignatureFromMetadata(metadata));

  std::vector<InputChoice> choices;
  for (const std::string& text : options.inputs) {
    TANDEM_ASSIGN(choices.emplace_back(), ParseInputChoice(text));
    if (signature.FindInput(choices.back().name) == nullptr) {
      return Invalid("model '{}' has no input '{}'", options.model, choices.back().name);
    }
  }
  std::vector<ShapeChoice> shapes;
  for (const std::string& text : options.shapes) {
    TANDEM_ASSIGN(shapes.emplace_back(), ParseShapeChoice(text));
  }
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : signature.inputs) {
    TANDEM_ASSIGN(inputs.emplace_back(), MakeInput(spec, choices, shapes, options.seed));
  }
  std::vector<std::string> outputs = options.outputs;
  if (outputs.empty()) {
    for (const TensorSpec& spec : signature.outputs) outputs.push_back(spec.name);
  }
  Message message = BuildMessage(inputs, outputs, options.top);
  ApiClient::Headers headers = {{"Inference-Header-Content-Length", std::to_string(message.json.size())}};
  if (options.slo_ms > 0) headers.emplace_back("X-SLO-Ms", std::format("{}", options.slo_ms));
  const auto start = std::chrono::steady_clock::now();
  TANDEM_ASSIGN(const Json::Value answer, client->Post(path + "/infer", message.json + message.bytes, headers));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  Print(answer, took.count(), options.json);
  return {};
}

}  // namespace

void AddInferCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("infer", "Send one request to a running server and print the answer");
  auto o = std::make_shared<InferOptions>();
  command->add_option("model", o->model, "The model")->required();
  command->add_option("--model-version", o->version, "Its version; the newest by default");
  command->add_option("-i,--input", o->inputs, "NAME=@FILE.npy or NAME=JSON; inputs not given are random");
  command->add_option("--shape", o->shapes, "NAME:D,D,… for a random input with variable dimensions");
  command->add_option("-o,--output", o->outputs, "Only these outputs");
  command->add_option("--top", o->top, "Print the N largest classes");
  command->add_option("--slo-ms", o->slo_ms, "Deadline of the request")->check(CLI::Range(0.0, 86400000.0));
  command->add_option("--seed", o->seed, "Seed of random inputs");
  command->add_flag("--json", o->json, "Print the whole answer as JSON");
  AddClientFlags(*command, o->client);
  command->footer(
      "Examples:\n"
      "  tandem infer squeezenet --top 3\n"
      "  tandem infer squeezenet --input data_0=@image.npy\n"
      "  tandem infer text --input 'x=[\"hello\"]' --slo-ms 50");
  command->callback([o, &exit_code] {
    const Status done = Infer(*o);
    if (done) return;
    std::fprintf(stderr, "tandem infer: %s\n", done.error().message.c_str());
    exit_code = kFailed;
  });
}

}  // namespace tandem::cli
