#include "server/cli/loadgen_view.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <format>

#include <unistd.h>

#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

double Ms(std::chrono::nanoseconds t) {
  return std::chrono::duration<double, std::milli>(t).count();
}

std::string Time(std::chrono::nanoseconds t) {
  return std::format("{:.{}f}", Ms(t), Ms(t) < 10 ? 2 : 1);
}

}  // namespace

LoadgenView::LoadgenView() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void LoadgenView::Update(const loadgen::LoadProgress& progress) {
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
  const std::string line = std::format(
      "{:6.1f} of {:.0f} s  {:7.1f}/s  p50 {} ms  p99 {} ms  in time {:.1f} %  late {}  rejected {}  failed {}  under "
      "way {}",
      Ms(progress.elapsed) / 1e3, Ms(progress.planned) / 1e3, rate, Time(p50), Time(p99), in_time, counts.late,
      counts.rejected, counts.failed, progress.outstanding);
  std::printf(terminal_ ? "\r\033[K%s" : "%s\n", line.c_str());
  std::fflush(stdout);
  in_line_ = terminal_;
}

void LoadgenView::EndLine() {
  if (std::exchange(in_line_, false)) std::puts("");
}

void LoadgenView::Summarize(const loadgen::RunReport& report) {
  EndLine();
  TableRows rows = {{"model", "offered/s", "answered/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "SLO ms",
                     "in time", "late", "rejected", "failed"}};
  for (const loadgen::ModelReport& m : report.load.models) {
    rows.push_back({m.model, std::format("{:.1f}", m.offered_rate), std::format("{:.1f}", m.achieved_rate),
                    Time(m.latency.Percentile(50)), Time(m.latency.Percentile(90)), Time(m.latency.Percentile(99)),
                    Time(m.latency.Percentile(99.9)), Time(m.latency.Max()),
                    m.slo ? std::format("{:g}", Ms(*m.slo)) : "-", std::format("{:.2f} %", 100 * m.attainment),
                    std::to_string(m.counts.late), std::to_string(m.counts.rejected), std::to_string(m.counts.failed)});
  }
  std::printf("\n%s", PlainTable(rows).c_str());
  for (const loadgen::ModelReport& m : report.load.models) {
    for (const auto& [reason, count] : m.failures) {
      std::printf("%s: %llu failed: %s\n", m.model.c_str(), static_cast<unsigned long long>(count), reason.c_str());
    }
  }
  if (!report.server_view.empty()) {
    TableRows seen = {{"as the server saw it", "requests", "queue ms", "compute ms", "in the server ms"}};
    for (const loadgen::ServerView& v : report.server_view) {
      seen.push_back({v.model, std::to_string(v.requests), std::format("{:.3f}", v.queue_ms),
                      std::format("{:.3f}", v.compute_ms), std::format("{:.3f}", v.total_ms)});
    }
    std::printf("\n%s", PlainTable(seen).c_str());
  }
  std::puts("");
  for (std::size_t i = 0; i < report.verdicts.size(); ++i) {
    if (!report.verdicts[i]) continue;
    std::printf("%s: %s\n", report.load.models[i].model.c_str(), loadgen::VerdictText(*report.verdicts[i]).c_str());
  }
  for (const std::string& problem : report.problems) std::printf("INVALID: %s\n", problem.c_str());
  if (report.load.partial) std::puts("PARTIAL: stopped before its time.");
}

}  // namespace tandem::cli
