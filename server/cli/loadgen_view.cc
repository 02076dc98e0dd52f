#include "server/cli/loadgen_view.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

std::string Time(std::chrono::nanoseconds t) {
  return Format("{:.{}f}", Ms(t), Ms(t) < 10 ? 2 : 1);
}

std::string Count(std::uint64_t count) {
  return std::to_string(count);
}

// Of the terminal; a line that is longer could not be overwritten.
std::size_t Columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void PrintModels(const loadgen::LoadReport& load) {
  const bool checked = std::ranges::any_of(load.models, [](const auto& model) { return model.checked > 0; });
  TableRows rows = {{"model", "offered/s", "answered/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "SLO ms",
                     "in time", "late", "rejected", "failed"}};
  if (checked) rows[0].insert(rows[0].end(), {"checked", "wrong"});
  for (const loadgen::ModelReport& m : load.models) {
    rows.push_back({m.name, Format("{:.1f}", m.offered_rate), Format("{:.1f}", m.achieved_rate),
                    Time(m.latency.Percentile(50)), Time(m.latency.Percentile(90)), Time(m.latency.Percentile(99)),
                    Time(m.latency.Percentile(99.9)), Time(m.latency.Max()), m.slo ? Format("{:g}", Ms(*m.slo)) : "-",
                    Format("{:.2f} %", 100 * m.attainment), Count(m.counts.late), Count(m.counts.rejected),
                    Count(m.counts.failed)});
    if (checked) rows.back().insert(rows.back().end(), {Count(m.checked), Count(m.wrong)});
  }
  std::printf("\n%s", PlainTable(rows).c_str());
  for (const loadgen::ModelReport& m : load.models) {
    for (const auto& [reason, count] : m.failures) {
      std::printf("%s: %s failed: %s\n", m.name.c_str(), Count(count).c_str(), reason.c_str());
    }
    if (m.wrong > 0) std::printf("%s: the first wrong answer: %s\n", m.name.c_str(), m.first_wrong.c_str());
  }
}

void PrintServerView(const std::vector<loadgen::ServerView>& views) {
  if (views.empty()) return;
  TableRows seen = {{"as the server saw it", "requests", "queue ms", "compute ms", "in the server ms"}};
  for (const loadgen::ServerView& v : views) {
    seen.push_back({v.model, Count(v.requests), Format("{:.3f}", v.queue_ms), Format("{:.3f}", v.compute_ms),
                    Format("{:.3f}", v.total_ms)});
  }
  std::printf("\n%s", PlainTable(seen).c_str());
}

void PrintTraining(const loadgen::TrainingSeries& training) {
  if (training.empty()) return;
  TableRows rows = {{"training beside it", "iterations", "held s"}};
  for (const loadgen::TrainingSeries::Job& job : training.Jobs()) {
    double held = 0;
    for (const auto& [reason, seconds] : job.held_s) held += seconds;
    rows.push_back({"job " + job.job, Format("{:.0f}", job.iterations), Format("{:.1f}", held)});
  }
  std::printf("\n%s", PlainTable(rows).c_str());
}

}  // namespace

LoadgenView::LoadgenView() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void LoadgenView::Update(const loadgen::LoadProgress& progress, std::optional<double> held) {
  loadgen::OutcomeCounts counts;
  double rate = 0;
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p99{0};
  for (const loadgen::ModelProgress& model : progress.models) {
    counts += model.counts;
    rate += model.rate;
    p50 = std::max(p50, model.p50);
    p99 = std::max(p99, model.p99);
  }
  const double in_time =
      counts.total() == 0 ? 100 : 100.0 * static_cast<double>(counts.ok) / static_cast<double>(counts.total());
  std::string line = Format(
      "{:6.1f} of {:.0f} s  {:7.1f}/s  p50 {} ms  p99 {} ms  in time {:.1f} %  late {}  rejected {}  failed {}  under "
      "way {}",
      Ms(progress.elapsed) / 1e3, Ms(progress.planned) / 1e3, rate, Time(p50), Time(p99), in_time, counts.late,
      counts.rejected, counts.failed, progress.outstanding);
  if (held) line += Format("  held {:.0f} %", 100 * *held);
  if (terminal_) line.resize(std::min(line.size(), Columns() - 1));
  std::printf(terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stdout);
  in_line_ = terminal_;
}

void LoadgenView::EndLine() {
  if (std::exchange(in_line_, false)) std::puts("");
}

void LoadgenView::Summarize(const loadgen::RunReport& report) {
  EndLine();
  PrintModels(report.load);
  PrintServerView(report.server_view);
  PrintTraining(report.training);
  std::puts("");
  for (std::size_t i = 0; i < report.verdicts.size(); ++i) {
    if (!report.verdicts[i]) continue;
    std::printf("%s: %s\n", report.load.models[i].name.c_str(), loadgen::VerdictText(*report.verdicts[i]).c_str());
  }
  for (const loadgen::ModelReport& model : report.load.models) {
    if (model.wrong == 0) continue;
    std::printf("%s: FAIL: %s of %s answers that were looked at are wrong\n", model.name.c_str(),
                Count(model.wrong).c_str(), Count(model.checked).c_str());
  }
  for (const std::string& problem : report.problems) std::printf("INVALID: %s\n", problem.c_str());
  if (report.load.partial) std::puts("PARTIAL: stopped before its time.");
  if (report.load.models.size() == 1) return;
  std::string result(loadgen::RunResultName(loadgen::ResultOf(report)));
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  if (result != "NONE") std::printf("%s, all loads together.\n", result.c_str());
}

}  // namespace tandem::cli
