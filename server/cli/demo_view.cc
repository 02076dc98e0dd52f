#include "server/cli/demo_view.h"

#include <cstdio>
#include <format>

#include <ftxui/dom/elements.hpp>
#include <ftxui/dom/table.hpp>
#include <ftxui/screen/screen.hpp>
#include <unistd.h>

#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

double Ms(std::chrono::nanoseconds t) {
  return std::chrono::duration<double, std::milli>(t).count();
}

ftxui::Element MakeTable(TableRows rows) {
  ftxui::Table table(std::move(rows));
  table.SelectAll().Border(ftxui::LIGHT);
  table.SelectAll().SeparatorVertical(ftxui::LIGHT);
  table.SelectRow(0).Decorate(ftxui::bold);
  table.SelectRow(0).Border(ftxui::LIGHT);
  return table.Render();
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
  TableRows rows = {{" model ", " req/s ", " p50 ms ", " p99 ms ", " late ", " refused "}};
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const loadgen::ModelProgress& m = progress.models[i];
    rows.push_back({std::format(" {} ", models_[i]), std::format("{:6.0f} ", m.rate),
                    std::format("{:7.1f} ", Ms(m.p50)), std::format("{:7.1f} ", Ms(m.p99)),
                    std::format("{:5} ", m.counts.late), std::format("{:8} ", m.counts.rejected)});
  }
  ftxui::Element view = ftxui::vbox(
      {MakeTable(std::move(rows)), ftxui::text(std::format(" {:.0f} of {:.0f} s, {} under way", elapsed,
                                                           Ms(progress.planned) / 1000, progress.outstanding))});
  ftxui::Screen screen = ftxui::Screen::Create(ftxui::Dimension::Fit(view));
  ftxui::Render(screen, view);
  std::printf("%s%s", reset_.c_str(), screen.ToString().c_str());
  std::fflush(stdout);
  reset_ = screen.ResetPosition();
}

void DemoView::Summarize(const loadgen::LoadReport& report) {
  TableRows rows = {
      {"model", "answered", "req/s", "p50 ms", "p99 ms", "SLO ms", "in time", "late", "refused", "failed"}};
  for (const loadgen::ModelReport& m : report.models) {
    rows.push_back({m.model, std::to_string(m.counts.ok + m.counts.late), std::format("{:.1f}", m.achieved_rate),
                    std::format("{:.1f}", Ms(m.latency.Percentile(50))),
                    std::format("{:.1f}", Ms(m.latency.Percentile(99))), std::format("{:.0f}", m.slo ? Ms(*m.slo) : 0),
                    std::format("{:.2f} %", 100 * m.attainment), std::to_string(m.counts.late),
                    std::to_string(m.counts.rejected), std::to_string(m.counts.failed)});
  }
  std::printf("\n%s\n", PlainTable(rows).c_str());
}

}  // namespace tandem::cli
