#include "colocation/run_width.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

// When the last of the runs ends if each has one thread, and takes the next one that is free.
nanoseconds NarrowEnd(const WidthSnapshot& s) {
  std::array<nanoseconds, kMostThreads> space;
  const std::size_t threads = std::min(s.rests.size(), space.size());
  const std::span<nanoseconds> levels(space.data(), threads);
  std::ranges::copy(s.rests.first(threads), levels.begin());
  std::ranges::make_heap(levels, std::greater());
  // Beyond some rounds it makes no difference how they come out at the end.
  const std::int64_t played = std::min<std::int64_t>(s.runs, 4 * static_cast<std::int64_t>(threads));
  const nanoseconds others = s.runs > 1 ? (s.all_narrow - s.narrow->typical) / (s.runs - 1) : nanoseconds(0);
  for (std::int64_t i = 0; i < played; ++i) {
    std::ranges::pop_heap(levels, std::greater());
    levels.back() += i == 0 ? s.narrow->typical : std::max(others, nanoseconds(0));
    std::ranges::push_heap(levels, std::greater());
  }
  return std::ranges::max(levels) + (s.runs - played) * others / static_cast<std::int64_t>(threads);
}

// Later is more; what is known from beforehand, or guessed, is older than what requests have taught.
MonotonicTime Age(const RunPrediction& run) {
  return run.learnt == kBeforehand ? MonotonicTime{} : run.learnt;
}

}  // namespace

void BoundByOther(RunPrediction& run, RunWidth width, const RunPrediction& other, int threads) {
  if (Age(other) <= Age(run)) return;
  const bool narrow = width == RunWidth::kOne;
  const int times = 2 * threads;
  const nanoseconds least = narrow ? other.typical : other.typical / times;
  const nanoseconds most = narrow ? other.typical * times : other.typical;
  const nanoseconds typical = std::clamp(run.typical, least, most);
  if (typical == run.typical) return;
  // As far from the median as it was there.
  const auto median = static_cast<double>(std::max<std::int64_t>(other.typical.count(), 1));
  const double spread = static_cast<double>(other.high.count()) / median;
  run.typical = typical;
  run.high = nanoseconds(static_cast<std::int64_t>(static_cast<double>(typical.count()) * spread));
}

WidthChoice ChooseWidth(const WidthSnapshot& s) {
  const WidthChoice all = s.running == 0 ? WidthChoice::kAll : WidthChoice::kWait;
  if (!s.narrow_possible) return all;
  const bool alone = s.running == 0 && s.runs <= 1;
  if (alone || !s.wide) return s.running == 0 ? WidthChoice::kAll : WidthChoice::kOne;
  if (s.overdue) return WidthChoice::kOne;
  const nanoseconds rest = std::ranges::max(s.rests);
  const bool wide_in_time = rest + s.wide->high <= s.left;
  if (!s.narrow) return wide_in_time && s.wide->typical * std::ssize(s.rests) > s.left ? all : WidthChoice::kOne;
  const bool narrow_in_time = s.narrow->high <= s.left;
  if (wide_in_time != narrow_in_time) return narrow_in_time ? WidthChoice::kOne : all;
  const bool untried = s.narrow->learnt < s.now - kTryNarrowAfter;
  const nanoseconds wide_end = rest + s.all_wide;
  if (untried || NarrowEnd(s) < wide_end - wide_end / kSoonerBy) return WidthChoice::kOne;
  return all;
}

}  // namespace tandem
