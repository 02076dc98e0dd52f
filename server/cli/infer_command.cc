#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/infer_answer.h"
#include "server/cli/infer_inputs.h"
#include "server/lifecycle/number_range.h"

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
  std::uint32_t seed = 0;
  bool json = false;
};

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
    message.json += Format(R"({{"name":{},"datatype":"{}","shape":{},"parameters":{{"binary_data_size":{}}}}})",
                           JsonString(input.name), DataTypeName(input.type), ShapeText(input.shape), input.data.size());
    message.bytes.append(reinterpret_cast<const char*>(input.data.view.data()), input.data.size());
  }
  message.json += R"(],"outputs":[)";
  for (const std::string& output : outputs) {
    if (&output != &outputs.front()) message.json += ',';
    message.json += Format(R"({{"name":{},"parameters":{{"binary_data":true)", JsonString(output));
    if (top > 0) message.json += Format(R"(,"classification":{})", top);
    message.json += "}}";
  }
  message.json += "]}";
  return message;
}

Result<std::vector<std::string>> ChooseOutputs(const InferOptions& options, const ModelSignature& signature) {
  std::vector<std::string> outputs = options.outputs;
  for (const std::string& name : outputs) {
    if (signature.FindOutput(name) == nullptr) return Invalid("--output: the model has no output '{}'", Excerpt(name));
  }
  if (outputs.empty()) {
    for (const TensorSpec& spec : signature.outputs) outputs.push_back(spec.name);
  }
  return outputs;
}

// Sends the request and prints the answer.
Status Ask(ApiClient& client, const DescribedModel& model, const Message& message, const InferOptions& options) {
  ApiClient::Headers headers = {{"Inference-Header-Content-Length", std::to_string(message.json.size())}};
  if (options.slo_ms > 0) headers.emplace_back("X-SLO-Ms", Format("{}", options.slo_ms));
  const MonotonicTime start = RealClock::Instance().Now();
  TANDEM_ASSIGN(const MixedAnswer answer,
                client.PostForMixed(model.path + "/infer", message.json + message.bytes, headers));
  const std::chrono::duration<double, std::milli> took = RealClock::Instance().Now() - start;
  TANDEM_ASSIGN(const std::vector<Tensor> outputs, OutputsOf(answer));
  if (options.json) {
    std::puts(AnswerAsJson(answer.json, outputs).c_str());
    return {};
  }
  std::printf("%s version %s answered in %.2f ms\n", answer.json["model_name"].asString().c_str(),
              answer.json["model_version"].asString().c_str(), took.count());
  for (const Tensor& output : outputs) std::puts(OutputAsText(output).c_str());
  return {};
}

int Complain(const Error& error, int exit_code) {
  std::fprintf(stderr, "tandem infer: %s\n", error.message.c_str());
  return exit_code;
}

// A mistake on the command line is told before the server is asked anything, where that is possible; what the server
// refuses is no mistake of the command line's form.
int Infer(const InferOptions& options) try {
  auto choices = ParseChoices(options.inputs, options.shapes);
  if (!choices) return Complain(choices.error(), kUsage);
  auto client = ApiClient::Connect(options.client);
  if (!client) return Complain(client.error(), UsageOr(client.error(), kFailed));
  if (const Status read = ReadFiles(*choices); !read) return Complain(read.error(), kFailed);
  const auto model = DescribeModel(**client, options.model, options.version);
  if (!model) return Complain(model.error(), kFailed);
  const auto inputs = MakeInputs(model->signature, *choices, options.seed);
  if (!inputs) return Complain(inputs.error(), UsageOr(inputs.error(), kFailed));
  const auto outputs = ChooseOutputs(options, model->signature);
  if (!outputs) return Complain(outputs.error(), kUsage);
  const Status asked = Ask(**client, *model, BuildMessage(*inputs, *outputs, options.top), options);
  return asked ? kDone : Complain(asked.error(), kFailed);
} catch (const Json::Exception&) {
  // An answer of another form than asked for.
  return Complain({ErrorCode::kInternal, "the server's answer is not what a model server gives; is --url right?"},
                  kFailed);
}

}  // namespace

void AddInferCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("infer", "Send one request to a running server and print the answer");
  auto o = std::make_shared<InferOptions>();
  command->add_option("model", o->model, "The model")->required();
  command->add_option("--model-version", o->version, "Its version; the newest by default");
  command->add_option("-i,--input", o->inputs, "NAME=@FILE.npy or NAME=JSON; of the others, those needed are random");
  command->add_option("--shape", o->shapes, "NAME:D,D,…: of a random input, or of a flat list");
  command->add_option("-o,--output", o->outputs, "Only these outputs");
  command->add_option("--top", o->top, "Print the N largest classes")->check(Between(1, 4294967295));
  command->add_option("--slo-ms", o->slo_ms, "Deadline of the request")->check(Between(0.001, 86400000));
  command->add_option("--seed", o->seed, "Seed of random inputs")->capture_default_str();
  command->add_flag("--json", o->json, "Print the whole answer as JSON");
  AddClientFlags(*command, o->client);
  command->footer(
      "Examples:\n"
      "  tandem infer squeezenet --top 3\n"
      "  tandem infer squeezenet --input data_0=@image.npy\n"
      "  tandem infer add --input 'a=[1, 2, 3, 4]' --shape b:1,4\n"
      "  tandem infer text --input 'x=[\"hello\"]' --slo-ms 50");
  command->callback([o, &exit_code] { exit_code = Infer(*o); });
}

}  // namespace tandem::cli
