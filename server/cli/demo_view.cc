#include "server/cli/demo_view.h"

#include <cstdio>
#include <utility>

#include <ftxui/dom/elements.hpp>
#include <ftxui/dom/table.hpp>
#include <ftxui/screen/screen.hpp>
#include <ftxui/screen/terminal.hpp>
#include <unistd.h>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

ftxui::Element MakeTable(TableRows rows) {
  ftxui::Table table(std::move(rows));
  table.SelectAll().Border(ftxui::LIGHT);
  table.SelectAll().SeparatorVertical(ftxui::LIGHT);
  table.SelectRow(0).Decorate(ftxui::bold);
  table.SelectRow(0).Border(ftxui::LIGHT);
  return table.Render();
}

void PrintPlain(const loadgen::LoadProgress& progress, const std::vector<std::string>& models,
                const std::vector<std::string>& lines) {
  std::string line = Format("{:5.1f} s", Ms(progress.elapsed) / 1000);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const loadgen::ModelProgress& m = progress.models[i];
    line += Format("  {} {:.0f}/s p50 {:.1f} ms p99 {:.1f} ms", models[i], m.rate, Ms(m.p50), Ms(m.p99));
  }
  std::puts(line.c_str());
  for (const std::string& below : lines) std::printf("         %s\n", below.c_str());
  std::fflush(stdout);
}

}  // namespace

DemoView::DemoView(std::vector<std::string> models)
    : models_(std::move(models)), terminal_(::isatty(STDOUT_FILENO) == 1) {}

std::size_t DemoView::columns() const {
  if (!terminal_) return 0;
  const int width = ftxui::Terminal::Size().dimx;
  return width > 3 ? static_cast<std::size_t>(width - 2) : 1;
}

void DemoView::Update(const loadgen::LoadProgress& progress, const std::vector<std::string>& lines, bool open_end) {
  if (!terminal_) {
    PrintPlain(progress, models_, lines);
    return;
  }
  TableRows rows = {{" model ", " req/s ", " p50 ms ", " p99 ms ", " late ", " refused ", " failed "}};
  for (std::size_t i = 0; i < models_.size(); ++i) {
    const loadgen::ModelProgress& m = progress.models[i];
    rows.push_back({Format(" {} ", models_[i]), Format("{:6.0f} ", m.rate), Format("{:7.1f} ", Ms(m.p50)),
                    Format("{:7.1f} ", Ms(m.p99)), Format("{:5} ", m.counts.late), Format("{:8} ", m.counts.rejected),
                    Format("{:7} ", m.counts.failed)});
  }
  ftxui::Elements elements = {MakeTable(std::move(rows))};
  for (const std::string& line : lines) elements.push_back(ftxui::text(" " + line));
  const std::string elapsed = Format("{:.0f}", Ms(progress.elapsed) / 1000);
  const std::string of = open_end ? "" : Format(" of {:.0f}", Ms(progress.planned) / 1000);
  elements.push_back(ftxui::text(Format(" {}{} s, {} under way", elapsed, of, progress.outstanding)));
  ftxui::Element view = ftxui::vbox(std::move(elements));
  ftxui::Screen screen = ftxui::Screen::Create(ftxui::Dimension::Fit(view));
  ftxui::Render(screen, view);
  std::printf("%s%s", reset_.c_str(), screen.ToString().c_str());
  std::fflush(stdout);
  reset_ = screen.ResetPosition(/*clear=*/true);
}

void DemoView::Leave() {
  if (!std::exchange(reset_, {}).empty()) std::puts("");
}

}  // namespace tandem::cli
