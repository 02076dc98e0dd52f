#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "colocation/job_ledger.h"
#include "memory/lane.h"

namespace tandem {

// A training job that has a lane: all that its turn may depend on.
struct JobView {
  SessionId session{};
  LaneId lane{};
  std::uint64_t order = 0;                            // Who came earlier has a smaller one; no two have the same.
  int priority = 0;                                   // The larger is first.
  std::optional<std::chrono::nanoseconds> remaining;  // By its measured rate; nullopt: none is known yet.
  JobHad had;
  double width = 1;   // The part of the device that it keeps busy when it runs alone.
  bool ready = true;  // Not paused, and its E fits the lane as it is.
};

struct JobSnapshot {
  std::span<const JobView> jobs;
};

// Who runs the next iteration in a lane; nullopt: the lane stands still.
struct JobTurn {
  LaneId lane{};
  std::optional<SessionId> session;

  friend bool operator==(const JobTurn&, const JobTurn&) = default;
};

// Decides whose turn it is in each lane. Asked when an iteration has ended, and when a job came or went; what it says
// of a lane in the middle of an iteration holds from that lane's boundary on. Pure: same snapshot, same decision; so it
// runs in tests and simulations as it does in the server. One file each, in colocation/job_policies.
class JobPolicy {
 public:
  virtual ~JobPolicy() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Of a job that waits for memory, and has no lane: the smaller is admitted first (memory/lane_queue.h), and of equals
  // who came first. `remaining` is what it is estimated to take.
  [[nodiscard]] virtual std::int64_t QueueRank(const JobView& /*job*/) const { return 0; }
  // Every lane that a job is in, once, the smallest name first.
  [[nodiscard]] virtual std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const = 0;
};

// The names, the default first.
[[nodiscard]] const std::vector<std::string_view>& JobPolicyNames();
// kInvalidArgument lists them.
[[nodiscard]] Result<std::unique_ptr<const JobPolicy>> MakeJobPolicy(std::string_view name);

}  // namespace tandem
