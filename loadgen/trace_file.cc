#include "loadgen/trace_file.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/arrival_spec.h"
#include "loadgen/csv_lines.h"
#include "loadgen/number_text.h"
#include "loadgen/report_file.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

// Takes the lines of a trace, one after the other. Used by one thread.
class TraceReader {
 public:
  explicit TraceReader(const TraceLimits& limits) : limits_(limits) {}

  [[nodiscard]] CsvLimits csv_limits() const { return {.bytes = limits_.bytes, .line = 1024}; }

  Status Line(std::string_view line) {
    if (!header_seen_) {
      if (line != kTraceHeader) return Invalid("the header must be '{}', got '{}'", kTraceHeader, Excerpt(line));
      header_seen_ = true;
      return {};
    }
    SplitFields(line, fields_);
    if (fields_.size() != 3) return Invalid("a row must have 3 fields ({}), got {}", kTraceHeader, fields_.size());
    if (rows_ == limits_.rows) {
      return Fail(ErrorCode::kTooLarge, "a trace must have at most {} rows", limits_.rows);
    }
    TraceRow row;
    TANDEM_ASSIGN(row.time, Time(fields_[0]));
    TANDEM_ASSIGN(row.size, Size(fields_[2]));
    TANDEM_ASSIGN(TraceStream* const stream, Stream(fields_[1]));
    stream->rows.push_back(row);
    ++rows_;
    return {};
  }

  Result<Trace> Finish(std::string_view name) {
    if (!header_seen_) return Invalid("'{}' line 1: the header must be '{}', got nothing", name, kTraceHeader);
    if (rows_ == 0) return Invalid("'{}' has no rows", name);
    Trace trace;
    for (auto& stream : streams_) trace.streams.push_back(std::move(stream));
    return trace;
  }

 private:
  Result<nanoseconds> Time(std::string_view text) {
    const auto seconds = ParseNumber(text);
    if (!seconds || std::signbit(*seconds) || *seconds > kMaxSeconds) {
      return Invalid("time_s must be a number from 0 to {}, got '{}'", kMaxSeconds, Excerpt(text));
    }
    const nanoseconds time(std::llround(*seconds * 1e9));
    if (time < last_) return Invalid("time_s must not fall, got '{}' after '{}'", Excerpt(text), last_text_);
    last_ = time;
    last_text_ = text;
    return time;
  }

  static Result<std::uint32_t> Size(std::string_view text) {
    if (text.empty()) return 1;
    const auto size = ParseCount(text);
    if (!size || *size < 1 || *size > kMaxTraceSize) {
      return Invalid("size must be a whole number from 1 to {}, got '{}'", kMaxTraceSize, Excerpt(text));
    }
    return static_cast<std::uint32_t>(*size);
  }

  Result<TraceStream*> Stream(std::string_view model) {
    if (last_stream_ != nullptr && last_stream_->model == model) return last_stream_;
    auto known = by_model_.find(model);
    if (known == by_model_.end()) {
      TANDEM_TRY(CheckTraceModel(model));
      if (streams_.size() == limits_.models) {
        return Fail(ErrorCode::kTooLarge, "model '{}' is one too many: a trace must have at most {} models",
                    Excerpt(model), limits_.models);
      }
      streams_.push_back(std::make_shared<TraceStream>());
      streams_.back()->model = model;
      known = by_model_.emplace(model, streams_.back().get()).first;
    }
    last_stream_ = known->second;
    return last_stream_;
  }

  const TraceLimits limits_;
  bool header_seen_ = false;
  std::vector<std::string_view> fields_;
  std::uint64_t rows_ = 0;
  nanoseconds last_{0};
  std::string last_text_ = "0";
  std::vector<std::shared_ptr<TraceStream>> streams_;          // As in the trace.
  std::map<std::string, TraceStream*, std::less<>> by_model_;  // Of streams_.
  TraceStream* last_stream_ = nullptr;                         // Of streams_: most rows are of the same model.
};

// Seconds with as many digits as they need.
void AppendSeconds(nanoseconds time, std::string& out) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  AppendFormat(out, "{}", time.count() / kSecond);
  const std::int64_t fraction = time.count() % kSecond;
  if (fraction == 0) return;
  AppendFormat(out, ".{:09}", fraction);
  while (out.back() == '0') out.pop_back();
}

}  // namespace

Status CheckTraceModel(std::string_view model) {
  if (model.size() > kMaxTraceModelName) {
    return Invalid("model must be at most {} bytes long, got '{}'", kMaxTraceModelName, Excerpt(model));
  }
  if (!IsValidUtf8(model)) return Invalid("model '{}' is not valid UTF-8", Excerpt(model));
  // A quote means that the file was written with another idea of CSV; taken as it is, it would name another model.
  const auto unfit = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == ','; };
  if (std::ranges::any_of(model, unfit)) {
    return Invalid("model '{}' has a comma, a quote or a control character", Excerpt(model));
  }
  return {};
}

Result<Trace> ParseTrace(std::string_view text, std::string_view name, const TraceLimits& limits) {
  TraceReader reader(limits);
  TANDEM_TRY(ReadLines(text, name, reader.csv_limits(), [&](std::string_view line) { return reader.Line(line); }));
  return reader.Finish(name);
}

Result<Trace> ReadTraceFile(const std::filesystem::path& file, const TraceLimits& limits) {
  TraceReader reader(limits);
  TANDEM_TRY(ReadFileLines(file, reader.csv_limits(), [&](std::string_view line) { return reader.Line(line); }));
  return reader.Finish(file.string());
}

std::string TraceText(const Trace& trace) {
  // The next row of each stream: its time, the stream and the row, the earliest on top.
  using Next = std::tuple<nanoseconds, std::size_t, std::size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  const auto push = [&](std::size_t stream, std::size_t row) {
    const auto& rows = trace.streams[stream]->rows;
    if (row < rows.size()) queue.emplace(rows[row].time, stream, row);
  };
  for (std::size_t i = 0; i < trace.streams.size(); ++i) push(i, 0);
  std::string text(kTraceHeader);
  text += '\n';
  while (!queue.empty()) {
    const auto [time, stream, row] = queue.top();
    queue.pop();
    AppendSeconds(time, text);
    AppendFormat(text, ",{},{}\n", trace.streams[stream]->model, trace.streams[stream]->rows[row].size);
    push(stream, row + 1);
  }
  return text;
}

Status WriteTraceFile(const std::filesystem::path& file, const Trace& trace) {
  const std::string text = TraceText(trace);
  if (const TraceLimits limits; text.size() > limits.bytes) {
    return Fail(ErrorCode::kTooLarge, "'{}' would be larger than {} bytes: {}", file.string(), limits.bytes,
                text.size());
  }
  return WriteReportFile(file, text);
}

}  // namespace tandem::loadgen
