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

// Makes a file in Chrome's trace format, which Perfetto reads. What reaches beyond the window is cut. Used by one
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

  explicit TraceWriter(TraceWindow window) : window_(window), known_since_(window.from) {}

  [[nodiscard]] const TraceWindow& window() const { return window_; }
  // From when on nothing is missing.
  [[nodiscard]] MonotonicTime known_since() const { return known_since_; }

  // Something is missing that was before that time.
  void Missing(MonotonicTime until) { known_since_ = std::max(known_since_, window_.Clip(until)); }

  void NameGroup(int group, std::string_view name);
  void NameTrack(Track track, std::string_view name);
  // Those of one track do not overlap one another.
  void Slice(Track track, std::string_view name, MonotonicTime from, MonotonicTime to, Arguments arguments = {});
  // What may overlap: those of one `id` stand in one another, each group of the same name has its place.
  void Begin(int group, std::uint64_t id, std::string_view name, MonotonicTime at, Arguments arguments = {});
  void End(int group, std::uint64_t id, std::string_view name, MonotonicTime at);

  // The whole file, with these as its `otherData`. Ends the use of the writer.
  [[nodiscard]] std::string Take(Arguments about);

 private:
  // Up to where the event's own fields begin.
  void Open(char phase, std::string_view name, MonotonicTime at, Track track);
  void Close(Arguments arguments);
  void Append(Arguments arguments);

  const TraceWindow window_;
  MonotonicTime known_since_;
  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool empty_ = true;
};

}  // namespace tandem::trace
