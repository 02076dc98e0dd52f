#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/result.h"

namespace tandem {

// What a decision to let a request in may depend on.
struct AdmissionSnapshot {
  std::string_view model;
  MonotonicTime now;
  std::optional<MonotonicTime> deadline;
  std::size_t queued = 0;        // Waiting for the device.
  std::size_t queued_model = 0;  // Of these, for the request's model.
  std::size_t max_queued = 0;
  std::size_t max_queued_model = 0;  // 0: no bound of its own.
};

// Decides at arrival whether a request may wait. Pure: same snapshot, same answer.
class AdmissionPolicy {
 public:
  virtual ~AdmissionPolicy() = default;
  [[nodiscard]] virtual Status Admit(const AdmissionSnapshot& snapshot) const = 0;
};

// Lets in whatever finds room and is not late already.
class BoundedQueueAdmission final : public AdmissionPolicy {
 public:
  [[nodiscard]] Status Admit(const AdmissionSnapshot& snapshot) const override;
};

}  // namespace tandem
