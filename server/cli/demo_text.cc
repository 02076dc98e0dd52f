#include "server/cli/demo_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "api/base/format.h"
#include "server/cli/demo_digits.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kLongestCurve = 40;

std::string CurveLine(std::string_view name, const std::vector<double>& values) {
  return Format("{:8}  {}  {:.4f} → {:.4f}", name, Sparkline(values, kLongestCurve), values.front(), values.back());
}

}  // namespace

std::string BuildLine(const std::optional<BuildSteps>& steps) {
  if (!steps) return "building the trainer";
  return Format("building the trainer: {} of {}", steps->done, steps->total);
}

std::vector<std::string> TrainingLines(const TrainingStatus& training, std::size_t columns) {
  const auto rate = training.job.has_ended() ? std::nullopt : training.steps_per_second;
  std::vector<std::string> lines = {ProgressLine(training.job, rate, columns)};
  if (training.decided && training.problem.empty()) {
    lines.push_back(Format("published as version {} of {}", training.job.published_version, training.job.model));
  }
  if (columns == 0) return lines;
  if (training.accuracies.size() > 1) lines.push_back(CurveLine("accuracy", training.accuracies));
  if (training.losses.size() > 1) lines.push_back(CurveLine("loss", training.losses));
  return lines;
}

std::string ServedLine(const ServedDigits& served) {
  std::string line;
  for (const auto& [version, score] : served.versions()) {
    const std::string by = Format("by version {}, {:.1f} % right", version, 100 * score.accuracy());
    line += line.empty() ? Format("{}: {} answer{} {}", kDigitsModel, score.answers, score.answers == 1 ? "" : "s", by)
                         : Format("; {} {}", score.answers, by);
  }
  return line;
}

std::string Sparkline(std::span<const double> values, std::size_t columns) {
  constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty() || columns == 0) return "";
  std::vector<double> shown;
  const std::size_t count = std::min(values.size(), columns);
  for (std::size_t i = 0; i < count; ++i)
    shown.push_back(values[count == 1 ? 0 : i * (values.size() - 1) / (count - 1)]);
  const auto [lowest, highest] = std::ranges::minmax(shown);
  std::string line;
  for (const double value : shown) {
    const double share = highest > lowest ? (value - lowest) / (highest - lowest) : 0;
    // A value that is no number is shown as the lowest.
    const double block = std::isfinite(share) ? std::round(share * (kBlocks.size() - 1)) : 0;
    line += kBlocks[static_cast<std::size_t>(block)];
  }
  return line;
}

}  // namespace tandem::cli
