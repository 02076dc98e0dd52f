#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/clock.h"

namespace tandem::trace {

// A time of which a trace is made.
struct TraceWindow {
  MonotonicTime from;
  MonotonicTime to;

  [[nodiscard]] bool Overlaps(MonotonicTime begin, MonotonicTime end) const { return begin < to && end > from; }
  [[nodiscard]] MonotonicTime Clip(MonotonicTime time) const { return std::clamp(time, from, to); }
};

// Makes events in Chrome's trace format, which Perfetto reads. What reaches beyond the window is cut. Used by one
// thread.
class TraceWriter {
 public:
  // Values are JSON: a number, or what JsonString() makes of a text.
  using Arguments = std::initializer_list<std::pair<std::string_view, std::string>>;

  // A row of the picture: a group, and a line in it.
  struct Track {
    int group = 0;
    std::int64_t line = 0;
  };

  explicit TraceWriter(TraceWindow window) : window_(window) {}

  [[nodiscard]] const TraceWindow& window() const { return window_; }

  void NameGroup(int group, std::string_view name);
  void NameTrack(Track track, std::string_view name);
  // Those of one track do not overlap one another.
  void Slice(Track track, std::string_view name, MonotonicTime from, MonotonicTime to, Arguments arguments = {});
  // What may overlap: those of one `id` stand in one another, each group of the same name has its place.
  void Begin(int group, std::uint64_t id, std::string_view name, MonotonicTime at, Arguments arguments = {});
  void End(int group, std::uint64_t id, std::string_view name, MonotonicTime at);

  // The events, with commas in between.
  [[nodiscard]] std::string Take() { return std::move(text_); }

 private:
  // Up to where the event's own fields begin.
  void Open(char phase, std::string_view name, MonotonicTime at, Track track);
  void Close(Arguments arguments);

  const TraceWindow window_;
  std::string text_;
};

}  // namespace tandem::trace
