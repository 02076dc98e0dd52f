#pragma once

#include <chrono>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace tandem {

// What the runs of one node took, in whole microseconds each: ONNX Runtime counts no finer.
struct NodeProfile {
  std::string op;
  std::string name;
  std::string provider;  // By ONNX Runtime's name: "CPUExecutionProvider".
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};  // Without the nodes of its subgraphs, which stand for themselves.
  std::chrono::nanoseconds median{0};
};

struct SessionProfile {
  std::uint64_t runs = 0;
  std::chrono::nanoseconds run_median{0};  // Of whole runs.
  std::vector<NodeProfile> nodes;          // Those that took most time first.
  std::uint64_t unread = 0;                // Lines that are no JSON: ONNX Runtime does not escape names.
};

// Reads what a session with SessionSpec::profile has written of runs one after the other: of the first `most_runs`, but
// for the very first, which does what is lazy and does not count. Takes memory by the number of lines. Pure.
[[nodiscard]] SessionProfile ReadOrtProfile(std::istream& text, std::uint64_t most_runs);

}  // namespace tandem
