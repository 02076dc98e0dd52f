#include "server/trace/trace_writer.h"

#include <chrono>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::trace {
namespace {

// As the format wants it: microseconds.
double Micros(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

void TraceWriter::Open(char phase, std::string_view name, MonotonicTime at, Track track) {
  if (!empty_) text_ += ",\n";
  empty_ = false;
  text_ += R"({"name":)";
  AppendJsonString(name, text_);
  AppendFormat(text_, R"(,"ph":"{}","ts":{:.3f},"pid":{},"tid":{})", phase, Micros(window_.Clip(at).time_since_epoch()),
               track.group, track.line);
}

void TraceWriter::Append(Arguments arguments) {
  text_ += '{';
  const char* comma = "";
  for (const auto& [name, value] : arguments) {
    AppendFormat(text_, "{}\"{}\":{}", comma, name, value);
    comma = ",";
  }
  text_ += '}';
}

void TraceWriter::Close(Arguments arguments) {
  if (arguments.size() > 0) {
    text_ += R"(,"args":)";
    Append(arguments);
  }
  text_ += '}';
}

std::string TraceWriter::Take(Arguments about) {
  text_ += "\n],\"otherData\":";
  Append(about);
  text_ += "}\n";
  return std::move(text_);
}

void TraceWriter::NameGroup(int group, std::string_view name) {
  Open('M', "process_name", window_.from, {.group = group, .line = 0});
  Close({{"name", JsonString(name)}});
  Open('M', "process_sort_index", window_.from, {.group = group, .line = 0});
  Close({{"sort_index", std::to_string(group)}});
}

void TraceWriter::NameTrack(Track track, std::string_view name) {
  Open('M', "thread_name", window_.from, track);
  Close({{"name", JsonString(name)}});
}

void TraceWriter::Slice(Track track, std::string_view name, MonotonicTime from, MonotonicTime to, Arguments arguments) {
  Open('X', name, from, track);
  AppendFormat(text_, R"(,"dur":{:.3f})", Micros(window_.Clip(to) - window_.Clip(from)));
  Close(arguments);
}

void TraceWriter::Begin(int group, std::uint64_t id, std::string_view name, MonotonicTime at, Arguments arguments) {
  Open('b', name, at, {.group = group, .line = 0});
  AppendFormat(text_, R"(,"cat":"request","id":"{}")", id);
  Close(arguments);
}

void TraceWriter::End(int group, std::uint64_t id, std::string_view name, MonotonicTime at) {
  Open('e', name, at, {.group = group, .line = 0});
  AppendFormat(text_, R"(,"cat":"request","id":"{}")", id);
  Close({});
}

}  // namespace tandem::trace
