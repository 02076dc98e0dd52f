#pragma once

#include <cstdint>

namespace tandem::loadgen {

// What a request came to; each is counted once.
enum class Outcome : std::uint8_t {
  kOk,        // Answered within the SLO, or without one.
  kLate,      // Answered, but after the SLO.
  kRejected,  // 503 or 429.
  kFailed,    // Any other answer, or none.
};

struct OutcomeCounts {
  std::uint64_t ok = 0, late = 0, rejected = 0, failed = 0;

  [[nodiscard]] std::uint64_t answered() const { return ok + late; }
  [[nodiscard]] std::uint64_t total() const { return ok + late + rejected + failed; }

  void Add(Outcome outcome) {
    switch (outcome) {
      case Outcome::kOk: ++ok; break;
      case Outcome::kLate: ++late; break;
      case Outcome::kRejected: ++rejected; break;
      case Outcome::kFailed: ++failed; break;
    }
  }

  OutcomeCounts& operator+=(const OutcomeCounts& other) {
    ok += other.ok;
    late += other.late;
    rejected += other.rejected;
    failed += other.failed;
    return *this;
  }
};

}  // namespace tandem::loadgen
