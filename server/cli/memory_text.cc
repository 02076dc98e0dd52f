#include "server/cli/memory_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "api/base/byte_text.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/cli/plain_table.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {
namespace {

struct Region {
  char mark = ' ';
  std::string name;
  double bytes = 0;
};

std::unexpected<Error> NotUnderstood() {
  return Fail(ErrorCode::kInternal, "the server's answer is not what a tandem server tells of memory; is --url right?");
}

Result<double> Number(const Json::Value& object, const char* name) {
  const Json::Value& value = object[name];
  if (!value.isNumeric() || value.asDouble() < 0) return NotUnderstood();
  return value.asDouble();
}

std::string Text(double bytes) {
  return ByteText(static_cast<std::uint64_t>(std::min(bytes, 1e18)));
}

Result<std::vector<Region>> RegionsOf(const Json::Value& answer) {
  constexpr std::pair<const char*, char> kMarks[] = {
      {"server", '#'}, {"models", 'M'}, {"jobs", 'J'}, {"free", '.'}, {"lanes", '~'}};
  const Json::Value& list = answer["regions"];
  if (!list.isArray()) return NotUnderstood();
  std::vector<Region> regions;
  for (const Json::Value& one : list) {
    if (!one.isObject() || !one["name"].isString()) return NotUnderstood();
    TANDEM_ASSIGN(const double bytes, Number(one, "bytes"));
    const std::string name = one["name"].asString();
    const auto* const mark = std::ranges::find_if(kMarks, [&](const auto& known) { return name == known.first; });
    regions.push_back(
        {.mark = mark == std::ranges::end(kMarks) ? '?' : mark->second, .name = Excerpt(name), .bytes = bytes});
  }
  return regions;
}

// Each part as long as it is large; what is there at all is seen, if there is room.
std::string Bar(const std::vector<Region>& regions, int columns) {
  double all = 0;
  for (const Region& region : regions) all += region.bytes;
  std::string bar;
  double before = 0;
  for (const Region& region : regions) {
    before += region.bytes;
    const auto end = all > 0 ? static_cast<std::size_t>(std::lround(before / all * columns)) : 0;
    const std::size_t least = bar.size() + (region.bytes > 0 ? 1 : 0);
    bar.append(std::min<std::size_t>(std::max(end, least), static_cast<std::size_t>(columns)) - bar.size(),
               region.mark);
  }
  return "[" + bar + "]";
}

std::string Legend(const std::vector<Region>& regions) {
  std::string text;
  for (const Region& region : regions) AppendFormat(text, "  {} {} {}", region.mark, region.name, Text(region.bytes));
  return text;
}

Result<std::string> SessionTable(const Json::Value& list) {
  if (!list.isArray()) return NotUnderstood();
  if (list.empty()) return std::string();
  TableRows rows = {{"WHO", "KIND", "PERSISTENT", "A RUN", "MEASURED", "LANE"}};
  for (const Json::Value& one : list) {
    if (!one.isObject() || !one["name"].isString() || !one["kind"].isString()) return NotUnderstood();
    TANDEM_ASSIGN(const double persistent, Number(one, "persistent_bytes"));
    TANDEM_ASSIGN(const double ephemeral, Number(one, "ephemeral_bytes"));
    const Json::Value& measured = one["measured_bytes"];
    const Json::Value& lane = one["lane"];
    rows.push_back({PrintableLines(one["name"].asString()), Excerpt(one["kind"].asString()), Text(persistent),
                    Text(ephemeral), measured.isNumeric() ? Text(std::max(measured.asDouble(), 0.0)) : "-",
                    lane.isUInt64() ? std::to_string(lane.asUInt64()) : "-"});
  }
  return "\n" + PlainTable(rows);
}

Result<std::string> WaitingLines(const Json::Value& list) {
  if (!list.isArray()) return NotUnderstood();
  std::string lines;
  for (const Json::Value& one : list) {
    if (!one.isObject() || !one["name"].isString() || !one["reason"].isString()) return NotUnderstood();
    AppendFormat(lines, "\n{} {}", PrintableLines(one["name"].asString()), PrintableLines(one["reason"].asString()));
  }
  return lines.empty() ? lines : lines + "\n";
}

}  // namespace

Result<std::string> MemoryText(const Json::Value& answer, int columns) {
  if (!answer.isObject() || !answer["budget_from"].isString()) return NotUnderstood();
  TANDEM_ASSIGN(const double budget, Number(answer, "budget_bytes"));
  TANDEM_ASSIGN(const double free, Number(answer, "free_bytes"));
  TANDEM_ASSIGN(const double overhang, Number(answer, "overhang_bytes"));
  TANDEM_ASSIGN(const auto regions, RegionsOf(answer));
  TANDEM_ASSIGN(const std::string sessions, SessionTable(answer["sessions"]));
  TANDEM_ASSIGN(const std::string waiting, WaitingLines(answer["waiting"]));
  std::string text =
      Format("budget {} ({}), free {}", Text(budget), PrintableLines(answer["budget_from"].asString()), Text(free));
  if (overhang > 0) AppendFormat(text, "; {} more are in use than the budget has: no job is begun", Text(overhang));
  AppendFormat(text, "\n{}\n{}\n", Bar(regions, std::clamp(columns, 10, 1000)), Legend(regions));
  return text + sessions + waiting;
}

}  // namespace tandem::cli
