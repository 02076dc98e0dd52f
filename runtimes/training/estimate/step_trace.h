#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/base/op_gate.h"
#include "runtimes/training/estimate/meta_ledger.h"

namespace tandem::training {

// The gate of a hollow learner: notes what is live as each operator begins, and the most until the next one does.
// Training thread only.
class StepTrace final : public OpGate {
 public:
  struct Mark {
    std::size_t op = 0;
    std::uint64_t live = 0;
    std::uint64_t peak = 0;
  };

  // Borrows the ledger, whose peaks are its own.
  explicit StepTrace(MetaLedger& ledger) : ledger_(ledger) {}

  void Announce(std::span<const OpInfo> ops) override { ops_.assign(ops.begin(), ops.end()); }
  void Begin(std::size_t op) override;
  void Describe(std::size_t op, const OpWork& work) override { work_[op] = work; }

  // Forgets what was noted of operators' bytes.
  void Clear();
  // Since then, in order.
  [[nodiscard]] std::span<const Mark> Marks();
  // The one with the highest peak; none when there are no marks.
  [[nodiscard]] std::optional<Mark> Highest();

  [[nodiscard]] OpWork WorkOf(std::size_t op) const;
  [[nodiscard]] std::string NameOf(std::size_t op) const;

 private:
  void Close();

  MetaLedger& ledger_;
  std::vector<OpInfo> ops_;
  std::map<std::size_t, OpWork> work_;  // Of a run of the operator.
  std::vector<Mark> marks_;
};

}  // namespace tandem::training
