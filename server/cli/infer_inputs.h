#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// The inputs and outputs in a model's metadata answer. Metadata does not say which inputs are optional.
[[nodiscard]] Result<ModelSignature> SignatureFromMetadata(const Json::Value& metadata);
// Marks those that the model's configuration calls so.
void MarkOptionalInputs(const Json::Value& config, ModelSignature& signature);

// A model as its server describes it.
struct DescribedModel {
  std::string path;  // "/v2/models/…"
  ModelSignature signature;
};
// Asks for it. `version` empty: the server's choice.
[[nodiscard]] Result<DescribedModel> DescribeModel(ApiClient& client, const std::string& model,
                                                   const std::string& version);

// What the command line, or a specification, says of one input.
struct InputChoice {
  std::string name;
  std::string file;                   // "@file.npy"; else
  std::optional<std::uint64_t> seed;  // random from a seed of its own; else
  Json::Value json;                   // [1, 2, 3], "text".
  std::string where;                  // It was said so, for messages: "--input x".
  std::optional<Tensor> read;         // The file, once ReadFiles() was called.
};

struct ShapeChoice {
  std::string name;
  Shape shape;
  std::string where;  // "--shape x"
};

// How many rows a request has along the first dimension, where that one is variable.
struct BatchChoice {
  std::uint32_t size = 1;
  std::string where = "--batch";
};

struct InferChoices {
  std::vector<InputChoice> inputs;
  std::vector<ShapeChoice> shapes;
  std::string inputs_where = "--input", shapes_where = "--shape";  // All of them.
};

// "x=@file.npy" or "x=[1,2]", and "x:1,3,224,224". kInvalidArgument also for a name that is given twice.
[[nodiscard]] Result<InferChoices> ParseChoices(const std::vector<std::string>& inputs,
                                                const std::vector<std::string>& shapes);

// Reads the files that the choices name. A file that is missing or no array is kNotFound.
[[nodiscard]] Status ReadFiles(InferChoices& choices);

// The inputs to send: those chosen, and random ones from `seed`, different for each input, in place of the others that
// the model needs. Variable dimensions of random inputs are 1 unless a shape is given. In a batch random inputs have as
// many rows, and a chosen one that has a single row has it as many times. kInvalidArgument: a choice does not fit the
// model.
[[nodiscard]] Result<std::vector<Tensor>> MakeInputs(const ModelSignature& signature, const InferChoices& choices,
                                                     std::uint32_t seed, const BatchChoice& batch = {});

}  // namespace tandem::cli
