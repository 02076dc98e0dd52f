#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"
#include "server/cli/op_profile_text.h"

namespace tandem::cli {

// What an operator of a trainer does to requests for the model.
struct TrainingBeside {
  std::int64_t job = 0;
  std::string kind;
  std::string name;
  std::string op_class;
  double ratio = 1;
  std::string why;
};

struct ModelProfileView {
  std::string model;
  std::string version;
  std::string inputs;  // "x [1,64]"
  std::uint64_t runs = 0;
  double run_ms = 0;
  std::uint64_t unread = 0;
  OpProfileView ops;
  std::vector<TrainingBeside> training;
};

// kInternal for an answer that is none of a tandem server.
[[nodiscard]] Result<ModelProfileView> ReadModelProfile(const Json::Value& answer);

// A table of the first `most` nodes, what a run takes, and what trainers do to the model.
[[nodiscard]] std::string ModelProfileTable(const ModelProfileView& profile, std::size_t most);

}  // namespace tandem::cli
