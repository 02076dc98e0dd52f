#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/result.h"
#include "bench/json_fields.h"

namespace tandem::bench {

// Another server that a scenario starts from a command line. Its words, the values of the environment and `ready` may
// hold placeholders such as {port}; kPeerPlaceholders lists them.
struct PeerSpec {
  std::string name;
  std::string packages;  // The list under bench/peers that {python} comes from; empty: it needs none.
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string ready;  // The path whose 200 says that it is ready.
  std::chrono::milliseconds start_timeout{0};
};

// {port} {grpc_port}      free ports, on which it is to listen
// {threads}               of one inference, as in our own server
// {model} {model_file}    the model's name and its ONNX file
// {python}                of the environment that `packages` names
// {peers} {folder}        bench/peers of the checkout, and the folder of the scenario file
// {bench}                 the program that runs the scenario
inline constexpr std::string_view kPeerPlaceholders[] = {"port",   "grpc_port", "threads", "model", "model_file",
                                                         "python", "peers",     "folder",  "bench"};

[[nodiscard]] Result<PeerSpec> ParsePeer(JsonFields fields);

// kNotFound, with the names that there are.
[[nodiscard]] Result<const PeerSpec*> FindPeer(const std::vector<PeerSpec>& peers, const std::string& name,
                                               const std::string& pointer);

// Replaces every {name} by its value; a name that is not in `values` is kInvalidArgument. Other braces stay.
[[nodiscard]] Result<std::string> FillPlaceholders(std::string_view text,
                                                   const std::map<std::string, std::string, std::less<>>& values);

}  // namespace tandem::bench
