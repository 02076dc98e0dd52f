#include "colocation/policy.h"

#include <string>

#include "colocation/policies/idle.h"
#include "colocation/policies/nice.h"
#include "colocation/policies/none.h"
#include "colocation/policies/op_gate.h"
#include "colocation/policies/partition.h"
#include "colocation/policies/pause.h"
#include "colocation/policies/tandem.h"
#include "colocation/policies/time_slice.h"

namespace tandem {
namespace {

using Maker = std::unique_ptr<const ColocationPolicy> (*)();

template <typename Policy>
std::unique_ptr<const ColocationPolicy> Make() {
  return std::make_unique<Policy>();
}

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr Entry kPolicies[] = {
    {"tandem", Make<TandemPolicy>},
    {"none", Make<NonePolicy>},
    {"nice", Make<NicePolicy>},
    {"idle", Make<IdlePolicy>},
    {"pause", Make<PausePolicy>},
    {"partition", Make<PartitionPolicy>},
    {"time_slice", Make<TimeSlicePolicy>},
    {"op_gate", Make<OpGatePolicy>},
};

}  // namespace

const std::vector<std::string_view>& ColocationPolicyNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Entry& entry : kPolicies) names.push_back(entry.name);
    return names;
  }();
  return kNames;
}

Result<std::unique_ptr<const ColocationPolicy>> MakeColocationPolicy(std::string_view name) {
  std::string known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Invalid("co-location policy '{}' is not known; known are {}", name, known);
}

}  // namespace tandem
