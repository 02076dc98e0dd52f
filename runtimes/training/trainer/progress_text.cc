#include "runtimes/training/trainer/progress_text.h"

#include <charconv>
#include <map>
#include <sstream>

#include "api/base/format.h"

namespace tandem::training {
namespace {

template <typename Number>
bool Read(const std::map<std::string, std::string>& lines, const std::string& name, Number& number) {
  const auto found = lines.find(name);
  if (found == lines.end()) return false;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

std::string ProgressText(const TrainingProgress& progress) {
  std::string text = Format("step {}\nepoch {}\nbatch {}\nsince_best {}\n", progress.step, progress.position.epoch,
                            progress.position.batch, progress.since_best);
  // The shortest text that reads back as the same number.
  if (progress.baseline) text += Format("baseline {}\n", *progress.baseline);
  if (progress.best) text += Format("best {}\n", *progress.best);
  return text;
}

Result<TrainingProgress> ParseProgress(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream in(text);
  for (std::string name, value; in >> name >> value;) lines[name] = value;
  TrainingProgress progress;
  if (!Read(lines, "step", progress.step) || !Read(lines, "epoch", progress.position.epoch) ||
      !Read(lines, "batch", progress.position.batch) || !Read(lines, "since_best", progress.since_best) ||
      progress.step < 0) {
    return Invalid("the checkpoint does not say where the run stood");
  }
  if (lines.contains("baseline") && !Read(lines, "baseline", progress.baseline.emplace())) progress.baseline.reset();
  if (lines.contains("best") && !Read(lines, "best", progress.best.emplace())) progress.best.reset();
  return progress;
}

}  // namespace tandem::training
