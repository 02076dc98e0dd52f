#include "server/cli/demo_view.h"

#include <unistd.h>

#include <cstdio>
#include <format>
#include <ftxui/dom/elements.hpp>
#include <ftxui/dom/table.hpp>
#include <ftxui/screen/screen.hpp>

namespace tandem::cli {
namespace {

using loadgen::LatencyHistogram;

double Ms(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); }

std::string Draw(std::vector<std::vector<std::string>> rows, std::string* reset) {
  ftxui::Table table(std::move(rows));
  table.SelectAll().Border(ftxui::LIGHT);
  table.SelectAll().SeparatorVertical(ftxui::LIGHT);
  table.SelectRow(0).Decorate(ftxui::bold);
  table.SelectRow(0).BorderBottom(ftxui::LIGHT);
  ftxui::Element element = table.Render();
  ftxui::Screen screen = ftxui::Screen::Create(ftxui::Dimension::Fit(element), ftxui::Dimension::Fit(element));
  ftxui::Render(screen, element);
  if (reset != nullptr) *reset = screen.ResetPosition();
  return screen.ToString();
}

}  // namespace

DemoView::DemoView(std::vector<std::string> models)
    : models_(std::move(models)), terminal_(::isatty(STDOUT_FILENO) == 1) {}

void DemoView::Update(const loadgen::LoadProgress& progress) {
  const double elapsed = Ms(progress.elapsed) / 1000;
  if (!terminal_) {
    std::string line = std::format("{:5.1f} s", elapsed);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      const loadgen::ModelProgress& m = progress.models[i];
      line += std::format("  {} {:.0f}/s p50 {:.1f} ms p99 {:.1f} ms", models_[i], m.rate, Ms(m.p50), Ms(m.p99));
    }
    std::puts(line.c_str());
    std::fflush(stdout);
    return;
  }
  std::vector<std::vector<std::string>> rows = {{" model ", " req/s ", " p50 ms ", " p99 ms ", " late ", " refused "}};
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const loadgen::ModelProgress& m = progress.models[i];
    rows.push_back({std::format(" {} ", models_[i]), std::format("{:6.0f} ", m.rate), std::format("{:7.1f} ", Ms(m.p50)),
                    std::format("{:7.1f} ", Ms(m.p99)), std::format("{:5} ", m.counts.late),
                    std::format("{:8} ", m.counts.rejected)});
  }
  std::string reset;
  const std::string table = Draw(std::move(rows), &reset);
  std::printf("%s%s\n%.0f of %.0f s, %zu under way   \r", reset_.c_str(), table.c_str(), elapsed,
              Ms(progress.planned) / 1000, progress.outstanding);
  std::fflush(stdout);
  // The status line below the table is one line more to go back over.
  reset_ = "\x1b[1A" + reset;
}

void DemoView::Summarize(const loadgen::LoadReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {" model ", " answered ", " req/s ", " p50 ms ", " p99 ms ", " SLO ms ", " in time ", " late ", " refused ", " failed "}};
  for (const loadgen::ModelReport& m : report.models) {
    rows.push_back({std::format(" {} ", m.model), std::format("{:9} ", m.counts.ok + m.counts.late),
                    std::format("{:6.1f} ", m.achieved_rate), std::format("{:7.1f} ", Ms(m.latency.Percentile(50))),
                    std::format("{:7.1f} ", Ms(m.latency.Percentile(99))),
                    std::format("{:7.0f} ", m.slo ? Ms(*m.slo) : 0), std::format("{:6.2f} % ", 100 * m.attainment),
                    std::format("{:5} ", m.counts.late), std::format("{:8} ", m.counts.rejected),
                    std::format("{:7} ", m.counts.failed)});
  }
  std::printf("\n%s\n", Draw(std::move(rows), nullptr).c_str());
}

}  // namespace tandem::cli
