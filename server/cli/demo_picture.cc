#include "server/cli/demo_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "api/base/duration.h"
#include "api/base/format.h"

namespace tandem::cli {
namespace {

constexpr double kLongestBar = 48;  // In characters.

struct Bar {
  std::string_view name;
  double ms = 0;
  std::optional<double> rate;
};

// Whole blocks, and an eighth of one more where that is nearer.
std::string Blocks(double length) {
  constexpr std::array<std::string_view, 8> kParts = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = std::max<std::int64_t>(1, std::llround(8 * length));
  std::string blocks;
  for (std::int64_t i = 0; i < eighths / 8; ++i) blocks += "█";
  return blocks + std::string(kParts[static_cast<std::size_t>(eighths % 8)]);
}

}  // namespace

std::string DemoPicture(const DemoOutcome& outcome) {
  for (const auto* report : {&outcome.alone, &outcome.unmanaged, &outcome.beside}) {
    if (!*report || (*report)->models.front().latency.count() == 0) return "";
  }
  const auto p99 = [](const std::optional<loadgen::LoadReport>& report) {
    return Ms(report->models.front().latency.Percentile(99));
  };
  const std::optional<double> rate = outcome.training ? outcome.training->steps_per_second : std::nullopt;
  const std::array<Bar, 3> bars = {{{"alone", p99(outcome.alone), std::nullopt},
                                    {"unmanaged", p99(outcome.unmanaged), outcome.unmanaged_rate},
                                    {outcome.policy, p99(outcome.beside), rate}}};
  const double longest = std::ranges::max(bars, {}, &Bar::ms).ms;
  std::string text = Format("p99 of {}\n", outcome.alone->models.front().model);
  for (const Bar& bar : bars) {
    AppendFormat(text, "  {:9}  {} {:.1f} ms", bar.name, Blocks(kLongestBar * bar.ms / std::max(longest, 1e-9)),
                 bar.ms);
    if (bar.rate) AppendFormat(text, ", {:.1f} training steps a second", *bar.rate);
    text += "\n";
  }
  return text;
}

}  // namespace tandem::cli
