#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::cli {

// An operator beside the requests of one model.
struct ProfiledPairing {
  std::string requests;  // "1.07 × squeezenet".
  bool heavy = false;
  std::string why;
};

// One operator of a job's profile, or a node of a model's, as the server tells it.
struct ProfiledOp {
  std::string kind;
  std::string name;
  std::string part;  // "forward", "gradients" or "update"; empty: of a model.
  std::uint64_t count = 0;
  double total_ms = 0;
  double typical_ms = 0;
  double share = 0;
  bool heavy = false;
  std::string why;
  std::vector<ProfiledPairing> pairings;  // Of a job: what is known of models, the heaviest first.
  std::string provider;                   // Of a model.
};

struct OpProfileView {
  double total_ms = 0;
  bool live = false;
  std::vector<ProfiledOp> ops;  // Those that took most time first.
};

// kInternal for an answer that is none of a tandem server.
[[nodiscard]] Result<OpProfileView> ReadOpProfile(const Json::Value& answer);

// A table of the first `most` operators, with a row more for each model beside them after the first, and a line for the
// others.
[[nodiscard]] std::string OpProfileTable(const OpProfileView& profile, std::size_t most);

// "and 7 more, 3.1 % of the time: --top\n" of those that are not shown; empty when all are.
[[nodiscard]] std::string OthersLine(std::span<const ProfiledOp> ops, std::size_t shown);

// An SVG of how the time divides: all, parts of a training step if there are any, kinds, operators. Heavy ones are
// warm.
[[nodiscard]] std::string FlameGraph(const OpProfileView& profile, const std::string& title);

}  // namespace tandem::cli
