#include "colocation/job_policy.h"

#include <string>

#include "colocation/job_policies/fair_share_of_memory.h"
#include "colocation/job_policies/fair_share_of_time.h"
#include "colocation/job_policies/first_in_first_out.h"
#include "colocation/job_policies/pack.h"
#include "colocation/job_policies/priority.h"
#include "colocation/job_policies/shortest_remaining_time.h"

namespace tandem {
namespace {

using Maker = std::unique_ptr<const JobPolicy> (*)();

template <typename Policy>
std::unique_ptr<const JobPolicy> Make() {
  return std::make_unique<Policy>();
}

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr Entry kPolicies[] = {
    {"fifo", Make<FirstInFirstOut>},          {"pack", Make<Pack>},
    {"srtf", Make<ShortestRemainingTime>},    {"fair", Make<FairShareOfTime>},
    {"fair_memory", Make<FairShareOfMemory>}, {"priority", Make<PriorityFirst>},
};

}  // namespace

const std::vector<std::string_view>& JobPolicyNames() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Entry& entry : kPolicies) names.push_back(entry.name);
    return names;
  }();
  return kNames;
}

Result<std::unique_ptr<const JobPolicy>> MakeJobPolicy(std::string_view name) {
  std::string known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Invalid("job policy '{}' is not known; known are {}", name, known);
}

}  // namespace tandem
