#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/flight_events.h"
#include "profiler/name_table.h"
#include "profiler/record_ring.h"
#include "profiler/turn_events.h"

namespace tandem {

// What the server did lately: requests, batches, and what was decided about training, to be explained afterwards. Made
// by the lifecycle, written by whoever does these things, read by server/trace. Thread-safe; a write takes no lock and
// no memory. What is about training is kept apart, so that many requests do not push it out, and so are turns in lanes,
// so that short ones do not push out what was decided.
class FlightRecorder {
 public:
  static constexpr std::size_t kDefaultRecords = 65'536;
  static constexpr std::size_t kLeastRecords = 1'024;
  static constexpr std::size_t kMostRecords = 1'048'576;
  static constexpr std::size_t kTrainingRecords = 8'192;
  static constexpr std::size_t kTurnRecords = 4'096;

  // Of requests and batches, six for a request that runs alone, 64 bytes each; 0: it is off.
  explicit FlightRecorder(std::size_t records)
      : requests_(records), training_(records == 0 ? 0 : kTrainingRecords), turns_(records == 0 ? 0 : kTurnRecords) {}

  [[nodiscard]] bool on() const { return requests_.capacity() > 0; }
  // How many run batches, 1 unless told otherwise: who reads must know whether one was free. Before anybody does.
  void SetWorkers(int workers) { workers_ = workers; }
  [[nodiscard]] int workers() const { return workers_; }

  // From 1 on.
  [[nodiscard]] std::uint64_t NextRequest() noexcept { return next_request_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t NextBatch() noexcept { return next_batch_.fetch_add(1, std::memory_order_relaxed); }
  // Of models.
  [[nodiscard]] NameTable& names() { return names_; }
  [[nodiscard]] const NameTable& names() const { return names_; }

  template <typename Event>
  void Write(const Event& event) noexcept {
    if constexpr (Event::kKind < kFirstOfTraining) {
      requests_.Write(event.Pack());
    } else if constexpr (Event::kKind < kFirstOfTurns) {
      training_.Write(event.Pack());
    } else {
      turns_.Write(event.Pack());
    }
  }

  [[nodiscard]] const RecordRing& requests() const { return requests_; }
  [[nodiscard]] const RecordRing& training() const { return training_; }
  [[nodiscard]] const RecordRing& turns() const { return turns_; }

 private:
  int workers_ = 1;
  RecordRing requests_;
  RecordRing training_;
  RecordRing turns_;
  NameTable names_;
  std::atomic<std::uint64_t> next_request_{1};
  std::atomic<std::uint64_t> next_batch_{1};
};

}  // namespace tandem
