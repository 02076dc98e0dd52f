#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::cli {

// One operator of a profile, as the server tells it.
struct ProfiledOp {
  std::string kind;
  std::string name;
  std::uint64_t count = 0;
  double total_ms = 0;
  double typical_ms = 0;
  double share = 0;
  bool heavy = false;
  std::string why;
  std::string interference;  // "1.07 × squeezenet"; empty: not known.
};

struct OpProfileView {
  double total_ms = 0;
  bool live = false;
  std::vector<ProfiledOp> ops;  // Those that took most time first.
};

// kInternal for an answer that is none of a tandem server.
[[nodiscard]] Result<OpProfileView> ReadOpProfile(const Json::Value& answer);

// A table of the first `most` operators, and a line for the others.
[[nodiscard]] std::string OpProfileTable(const OpProfileView& profile, std::size_t most);

// An SVG of how the time divides: all, forward and gradients and update, kinds, operators. Heavy ones are warm.
[[nodiscard]] std::string FlameGraph(const OpProfileView& profile, const std::string& title);

}  // namespace tandem::cli
