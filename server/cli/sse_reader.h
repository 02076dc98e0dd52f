#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::cli {

struct ServerSentEvent {
  std::string id;
  std::string kind;
  std::string data;

  friend bool operator==(const ServerSentEvent&, const ServerSentEvent&) = default;
};

// Reads server-sent events (text/event-stream) from pieces that are cut anywhere. An event that has not ended when its
// stream does counts for nothing. Used by one thread, for one stream.
class SseReader {
 public:
  // The events that are complete with this piece. kInternal when one is larger than any that our server sends.
  [[nodiscard]] Result<std::vector<ServerSentEvent>> Feed(std::string_view piece);

 private:
  static constexpr std::size_t kMaxEventBytes = 8 << 20;

  void TakeLine(std::string_view line, std::vector<ServerSentEvent>& events);

  std::string partial_;  // A line that has not ended yet.
  ServerSentEvent event_;
  bool has_data_ = false;
};

}  // namespace tandem::cli
