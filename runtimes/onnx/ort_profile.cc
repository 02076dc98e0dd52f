#include "runtimes/onnx/ort_profile.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <simdjson.h>

#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kNodeSuffix = "_kernel_time";
constexpr std::size_t kMostName = 500;
// Of one event and of all, in microseconds: what is beyond is none of ONNX Runtime's.
constexpr std::int64_t kLongest = 1'000'000'000;
constexpr std::int64_t kLatest = 1'000'000'000'000'000;

struct Span {
  std::int64_t thread = 0;
  std::int64_t began = 0;  // Microseconds.
  std::int64_t took = 0;
  std::size_t node = 0;     // Of nodes only.
  std::int64_t inside = 0;  // Nodes of its subgraphs, of the time that it took.

  [[nodiscard]] std::int64_t ended() const { return began + took; }
};

using NodeKey = std::tuple<std::string, std::string, std::string>;  // Operator, name, provider.

// What a file holds.
struct Events {
  std::vector<Span> runs;
  std::vector<Span> nodes;
  std::map<NodeKey, std::size_t> numbers;
  std::uint64_t unread = 0;

  void Add(const dom::object& event);
};

std::string TextOf(const dom::object& object, const char* key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? Readable(text, kMostName) : std::string();
}

void Events::Add(const dom::object& event) {
  std::string_view category;
  std::string_view name;
  Span span;
  if (event["cat"].get(category) != simdjson::SUCCESS || event["name"].get(name) != simdjson::SUCCESS ||
      event["tid"].get(span.thread) != simdjson::SUCCESS || event["ts"].get(span.began) != simdjson::SUCCESS ||
      event["dur"].get(span.took) != simdjson::SUCCESS) {
    return;
  }
  if (span.began < 0 || span.began > kLatest || span.took < 0 || span.took > kLongest) return;
  if (category == "Session" && name == "model_run") return runs.push_back(span);
  dom::object more;
  if (category != "Node" || !name.ends_with(kNodeSuffix) || event["args"].get(more) != simdjson::SUCCESS) return;
  name.remove_suffix(kNodeSuffix.size());
  NodeKey key{TextOf(more, "op_name"), Readable(name, kMostName), TextOf(more, "provider")};
  span.node = numbers.try_emplace(std::move(key), numbers.size()).first->second;
  nodes.push_back(span);
}

Events ReadEvents(std::istream& text) {
  Events events;
  dom::parser parser;
  // One event a line, so that one that cannot be read spoils no other.
  for (std::string line; std::getline(text, line);) {
    std::string_view one = line;
    while (one.ends_with(',') || one.ends_with('\r')) one.remove_suffix(1);
    if (one.empty() || one == "[" || one == "]") continue;
    dom::object event;
    if (parser.parse(one.data(), one.size()).get(event) == simdjson::SUCCESS) {
      events.Add(event);
    } else {
      ++events.unread;
    }
  }
  return events;
}

// The nodes of a subgraph run while its node does, on the same thread. Times are cut to microseconds, so that one after
// the other never begins before the first has ended, but one inside may end a microsecond late.
void SeparateSubgraphs(std::vector<Span>& nodes) {
  std::ranges::sort(nodes, [](const Span& a, const Span& b) {
    return std::tuple(a.thread, a.began, -a.took) < std::tuple(b.thread, b.began, -b.took);
  });
  std::vector<Span*> around;
  for (Span& node : nodes) {
    while (!around.empty() && (around.back()->thread != node.thread || around.back()->ended() <= node.began)) {
      around.pop_back();
    }
    if (!around.empty()) around.back()->inside += node.took;
    around.push_back(&node);
  }
}

std::chrono::nanoseconds MedianOf(std::vector<std::int64_t>& micros) {
  if (micros.empty()) return {};
  const auto middle = micros.begin() + static_cast<std::ptrdiff_t>(micros.size() / 2);
  std::ranges::nth_element(micros, middle);
  return std::chrono::microseconds(*middle);
}

}  // namespace

SessionProfile ReadOrtProfile(std::istream& text, std::uint64_t most_runs) {
  Events events = ReadEvents(text);
  SessionProfile profile{.unread = events.unread};
  if (events.runs.size() < 2) return profile;
  std::ranges::sort(events.runs, {}, &Span::began);
  const std::int64_t first_ended = events.runs.front().ended();
  const auto counted = std::span(events.runs).subspan(1, std::min<std::size_t>(events.runs.size() - 1, most_runs));
  if (counted.empty()) return profile;
  std::vector<std::int64_t> whole;
  for (const Span& run : counted) whole.push_back(run.took);
  profile.runs = whole.size();
  profile.run_median = MedianOf(whole);

  SeparateSubgraphs(events.nodes);
  std::vector<std::vector<std::int64_t>> times(events.numbers.size());
  for (const Span& node : events.nodes) {
    if (node.began < first_ended || node.began > counted.back().ended()) continue;
    times[node.node].push_back(std::max<std::int64_t>(node.took - node.inside, 0));
  }
  for (const auto& [key, number] : events.numbers) {
    std::vector<std::int64_t>& micros = times[number];
    if (micros.empty()) continue;
    const auto& [op, name, provider] = key;
    NodeProfile node{.op = op, .name = name, .provider = provider, .count = micros.size()};
    for (const std::int64_t one : micros) node.total += std::chrono::microseconds(one);
    node.median = MedianOf(micros);
    profile.nodes.push_back(std::move(node));
  }
  std::ranges::stable_sort(profile.nodes, std::ranges::greater{}, &NodeProfile::total);
  return profile;
}

}  // namespace tandem
