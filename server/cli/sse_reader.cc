#include "server/cli/sse_reader.h"

#include <utility>

namespace tandem::cli {

Result<std::vector<ServerSentEvent>> SseReader::Feed(std::string_view piece) {
  std::vector<ServerSentEvent> events;
  while (!piece.empty()) {
    const std::size_t newline = piece.find('\n');
    partial_.append(piece.substr(0, newline));
    if (partial_.size() + event_.data.size() > kMaxEventBytes) {
      return Fail(ErrorCode::kInternal, "an event of the server's has more than {} bytes", kMaxEventBytes);
    }
    if (newline == std::string_view::npos) break;
    piece.remove_prefix(newline + 1);
    std::string line = std::exchange(partial_, {});
    if (line.ends_with('\r')) line.pop_back();
    TakeLine(line, events);
  }
  return events;
}

void SseReader::TakeLine(std::string_view line, std::vector<ServerSentEvent>& events) {
  if (line.empty()) {
    // The last id holds for what follows, too.
    std::string id = event_.id;
    if (has_data_) events.push_back(std::move(event_));
    event_ = {.id = std::move(id), .kind = {}, .data = {}};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "id") event_.id = value;
  if (field == "event") event_.kind = value;
  if (field == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  }
}

}  // namespace tandem::cli
