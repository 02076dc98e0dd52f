#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tandem::loadgen {

struct TraceRow {
  std::chrono::nanoseconds time{0};  // From the start.
  std::uint32_t size = 1;            // Batch size.

  friend bool operator==(const TraceRow&, const TraceRow&) = default;
};

// The requests of one model, times never falling.
struct TraceStream {
  std::string model;          // Empty: the only model of the run.
  std::deque<TraceRow> rows;  // A deque grows without a copy: 16 bytes a row, also while a large file is read.
};

// A recorded load, model by model.
struct Trace {
  // In the order in which the models first appear. Shared, so that the specs of a run can replay a stream without a
  // copy of it and outlive the trace.
  std::vector<std::shared_ptr<const TraceStream>> streams;

  [[nodiscard]] std::uint64_t rows() const {
    std::uint64_t count = 0;
    for (const auto& stream : streams) count += stream->rows.size();
    return count;
  }
  // Null when the trace has no such model.
  [[nodiscard]] std::shared_ptr<const TraceStream> Find(const std::string& model) const {
    for (const auto& stream : streams) {
      if (stream->model == model) return stream;
    }
    return nullptr;
  }
};

}  // namespace tandem::loadgen
