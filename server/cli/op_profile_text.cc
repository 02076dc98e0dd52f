#include "server/cli/op_profile_text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "api/base/format.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

constexpr int kImageWidth = 1200;
constexpr int kRowHeight = 20;
constexpr int kTitleHeight = 34;
constexpr double kNarrowest = 0.2;  // Of a frame that is drawn, in pixels.
constexpr double kCharacterWidth = 6.6;

std::string PartOf(const std::string& kind) {
  if (kind.ends_with(" gradient") || kind == "gradients kept") return "gradients";
  return kind == "update" ? "update" : "forward";
}

std::string ClassText(bool heavy) {
  return heavy ? "heavy" : "light";
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

// A frame with what it divides into.
struct Frame {
  double ms = 0;
  double heavy_ms = 0;
  std::string more;  // For whoever points at it.
  std::map<std::string, Frame> parts;

  void Add(const ProfiledOp& op) {
    ms += op.total_ms;
    if (op.heavy) heavy_ms += op.total_ms;
  }
};

int Depth(const Frame& frame) {
  int deepest = 0;
  for (const auto& [name, part] : frame.parts) deepest = std::max(deepest, Depth(part));
  return deepest + 1;
}

struct Place {
  double x = 0;
  int y = 0;
  double pixels_per_ms = 0;
};

void Draw(const std::string& name, const Frame& frame, const Place& place, double all_ms, std::string& svg) {
  const double width = frame.ms * place.pixels_per_ms;
  if (width < kNarrowest) return;
  // From a cool green to a warm red, by how much of it is heavy.
  const double heavy = frame.ms > 0 ? frame.heavy_ms / frame.ms : 0;
  const auto blend = [&](double cool, double warm) { return static_cast<int>(cool + (warm - cool) * heavy); };
  AppendFormat(svg,
               "<g><title>{}: {:.2f} ms, {:.1f} %{}</title><rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
               "height=\"{}\" rx=\"2\" fill=\"rgb({},{},{})\" stroke=\"white\" stroke-width=\"0.5\"/>",
               Escaped(name), frame.ms, 100 * frame.ms / all_ms, Escaped(frame.more), place.x, place.y, width,
               kRowHeight - 1, blend(150, 235), blend(200, 130), blend(160, 90));
  const auto fits = static_cast<std::size_t>(std::max(0.0, (width - 6) / kCharacterWidth));
  if (fits >= 3) {
    const std::string text = name.size() <= fits ? name : name.substr(0, fits - 1) + "…";
    AppendFormat(svg, "<text x=\"{:.2f}\" y=\"{}\">{}</text>", place.x + 3, place.y + 14, Escaped(text));
  }
  svg += "</g>\n";
  std::vector<const std::pair<const std::string, Frame>*> parts;
  for (const auto& part : frame.parts) parts.push_back(&part);
  std::ranges::stable_sort(parts, std::ranges::greater{}, [](const auto* part) { return part->second.ms; });
  double x = place.x;
  for (const auto* part : parts) {
    Draw(part->first, part->second, {.x = x, .y = place.y + kRowHeight, .pixels_per_ms = place.pixels_per_ms}, all_ms,
         svg);
    x += part->second.ms * place.pixels_per_ms;
  }
}

Frame Divide(const OpProfileView& profile) {
  Frame all;
  for (const ProfiledOp& op : profile.ops) {
    all.Add(op);
    Frame* frame = &all;
    for (const std::string& name : {op.part, op.kind, op.name}) {
      if (name.empty()) continue;
      frame = &frame->parts[name];
      frame->Add(op);
    }
    if (op.name.empty()) continue;
    const std::string note = op.part.empty() ? op.provider : Format("{}: {}", ClassText(op.heavy), op.why);
    frame->more = Format(", {} times, {}", op.count, note);
  }
  return all;
}

Result<std::vector<ProfiledPairing>> ReadPairings(const Json::Value& list) {
  std::vector<ProfiledPairing> pairings;
  if (!list.isArray()) return pairings;
  for (const Json::Value& pairing : list) {
    if (!pairing.isObject() || !pairing["ratio"].isNumeric() || !pairing["model"].isString() ||
        !pairing["class"].isString() || !pairing["why"].isString()) {
      return Fail(ErrorCode::kInternal, "no pairing");
    }
    pairings.push_back({.requests = Format("{:.2f} × {}", pairing["ratio"].asDouble(), pairing["model"].asString()),
                        .heavy = pairing["class"] == "heavy",
                        .why = pairing["why"].asString()});
  }
  return pairings;
}

}  // namespace

Result<OpProfileView> ReadOpProfile(const Json::Value& answer) {
  const auto bad = [] { return Fail(ErrorCode::kInternal, "the server's answer is no profile; is --url right?"); };
  if (!answer.isObject() || !answer["total_ms"].isNumeric() || !answer["ops"].isArray()) return bad();
  OpProfileView view{.total_ms = answer["total_ms"].asDouble(), .live = answer["live"] == true, .ops = {}};
  for (const Json::Value& op : answer["ops"]) {
    if (!op.isObject() || !op["kind"].isString() || !op["name"].isString() || !op["count"].isUInt64() ||
        !op["total_ms"].isNumeric() || !op["typical_ms"].isNumeric() || !op["share"].isNumeric() ||
        !op["class"].isString() || !op["why"].isString()) {
      return bad();
    }
    ProfiledOp one{.kind = op["kind"].asString(),
                   .name = op["name"].asString(),
                   .part = PartOf(op["kind"].asString()),
                   .count = op["count"].asUInt64(),
                   .total_ms = op["total_ms"].asDouble(),
                   .typical_ms = op["typical_ms"].asDouble(),
                   .share = op["share"].asDouble(),
                   .heavy = op["class"] == "heavy",
                   .why = op["why"].asString(),
                   .pairings = {},
                   .provider = ""};
    auto pairings = ReadPairings(op["interference"]);
    if (!pairings) return bad();
    one.pairings = *std::move(pairings);
    view.ops.push_back(std::move(one));
  }
  return view;
}

std::string OthersLine(std::span<const ProfiledOp> ops, std::size_t shown) {
  if (shown >= ops.size()) return "";
  double rest = 0;
  for (const ProfiledOp& op : ops.subspan(shown)) rest += op.share;
  return Format("and {} more, {:.1f} % of the time: --top\n", ops.size() - shown, 100 * rest);
}

std::string OpProfileTable(const OpProfileView& profile, std::size_t most) {
  TableRows rows{
      {"operator", "node", "count", "total ms", "typical ms", "share", "class", "requests beside it", "why"}};
  const std::size_t shown = std::min(most, profile.ops.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const ProfiledOp& op = profile.ops[i];
    rows.push_back({op.kind, op.name.empty() ? "-" : op.name, std::to_string(op.count), Format("{:.1f}", op.total_ms),
                    Format("{:.3f}", op.typical_ms), Format("{:.1f} %", 100 * op.share), ClassText(op.heavy),
                    op.pairings.empty() ? "-" : op.pairings[0].requests, op.why});
    for (std::size_t j = 1; j < op.pairings.size(); ++j) {
      const ProfiledPairing& other = op.pairings[j];
      rows.push_back({"", "", "", "", "", "", ClassText(other.heavy), other.requests, other.why});
    }
  }
  std::string text = PlainTable(rows) + OthersLine(profile.ops, shown);
  AppendFormat(text, "{:.2f} s in all, of {}\n", profile.total_ms / 1e3,
               profile.live ? "the trainer that runs" : "the last trainer");
  return text;
}

std::string FlameGraph(const OpProfileView& profile, const std::string& title) {
  const Frame all = Divide(profile);
  const int height = kTitleHeight + kRowHeight * Depth(all) + 10;
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"monospace\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n",
      kImageWidth, height, Escaped(title));
  const double all_ms = std::max(all.ms, 1e-9);
  Draw("all operators", all, {.x = 10, .y = kTitleHeight, .pixels_per_ms = (kImageWidth - 20) / all_ms}, all_ms, svg);
  return svg + "</svg>\n";
}

}  // namespace tandem::cli
