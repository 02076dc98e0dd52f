#include "server/cli/train_progress.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kShortestBar = 10;
constexpr std::size_t kLongestBar = 40;

std::optional<double> NumberIn(const Json::Value& object, const char* name) {
  const Json::Value& value = object[name];
  return value.isNumeric() ? std::optional(value.asDouble()) : std::nullopt;
}

std::string TextIn(const Json::Value& object, const char* name) {
  return object[name].isString() ? object[name].asString() : "";
}

std::int64_t WholeIn(const Json::Value& object, const char* name) {
  return object[name].isInt64() ? object[name].asInt64() : 0;
}

std::string Bar(double share, std::size_t columns) {
  const auto inner = columns - 2;
  const auto full = static_cast<std::size_t>(std::floor(std::clamp(share, 0.0, 1.0) * static_cast<double>(inner)));
  std::string bar(full, '=');
  if (full < inner) bar += '>';
  bar.resize(inner, ' ');
  return "[" + bar + "]";
}

std::string MetricText(const JobView& job) {
  if (job.metric_name.empty() || !job.metric) return "";
  std::string text = Format("  {} {:.4f}", job.metric_name, *job.metric);
  if (job.best && *job.best != *job.metric) text += Format(" (best {:.4f})", *job.best);
  return text;
}

std::string StepsText(const JobView& job) {
  if (job.total_steps <= 0) return Format("step {}", job.step);
  return Format("{}/{}", job.step, job.total_steps);
}

}  // namespace

std::string PrintableLines(std::string_view text) {
  std::string lines;
  for (const char c : text) {
    const bool control = (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t') || c == '\x7f';
    lines += control ? '?' : c;
  }
  while (lines.ends_with('\n')) lines.pop_back();
  return lines;
}

Result<JobView> ReadJobView(const Json::Value& json) {
  if (!json.isObject() || !json["id"].isInt64() || !json["state"].isString() || !json["progress"].isObject()) {
    return Fail(ErrorCode::kInternal, "the server's answer is no training job; is --url right?");
  }
  const Json::Value& progress = json["progress"];
  return JobView{.id = json["id"].asInt64(),
                 .name = TextIn(json, "name"),
                 .owner = TextIn(json, "owner"),
                 .state = json["state"].asString(),
                 .reason = TextIn(json, "reason"),
                 .model = TextIn(json, "model"),
                 .model_version = TextIn(json, "model_version"),
                 .published_version = TextIn(json, "published_version"),
                 .publish = json["job"].isObject() ? TextIn(json["job"], "publish") : "",
                 .attempts = WholeIn(json, "attempts"),
                 .step = WholeIn(progress, "step"),
                 .total_steps = WholeIn(progress, "total_steps"),
                 .epoch = WholeIn(progress, "epoch"),
                 .loss = NumberIn(progress, "loss"),
                 .metric_name = TextIn(progress, "metric"),
                 .metric = NumberIn(progress, "value"),
                 .best = NumberIn(progress, "best"),
                 .created_at = TextIn(json, "created_at"),
                 .started_at = TextIn(json, "started_at"),
                 .ended_at = TextIn(json, "ended_at"),
                 .next_attempt_at = TextIn(json, "next_attempt_at")};
}

void StepRate::Add(MonotonicTime now, const JobView& job) {
  if (job.state != "running" || (!samples_.empty() && job.step < samples_.back().step)) samples_.clear();
  if (job.state != "running") return;
  samples_.push_back({.time = now, .step = job.step});
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

std::optional<double> StepRate::PerSecond() const {
  if (samples_.size() < 2) return std::nullopt;
  const std::chrono::duration<double> time = samples_.back().time - samples_.front().time;
  const auto steps = static_cast<double>(samples_.back().step - samples_.front().step);
  if (time.count() <= 0 || steps <= 0) return std::nullopt;
  return steps / time.count();
}

std::string DurationText(std::chrono::seconds duration) {
  const auto seconds = std::max<std::int64_t>(0, duration.count());
  if (seconds < 60) return Format("{} s", seconds);
  if (seconds < 3600) return Format("{} m {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return Format("{} h {} m", seconds / 3600, seconds % 3600 / 60);
  return Format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

std::string ProgressLine(const JobView& job, std::optional<double> steps_per_second, std::size_t columns) {
  const std::string head = Format("job {}  {}  ", job.id, job.state);
  const std::string steps = StepsText(job);
  std::string epoch = job.epoch > 0 ? Format("  epoch {}", job.epoch) : "";
  std::string tail;
  if (job.loss) tail += Format("  loss {:.4f}", *job.loss);
  tail += MetricText(job);
  if (steps_per_second) {
    tail += Format("  {:.{}f} steps/s", *steps_per_second, *steps_per_second < 100 ? 1 : 0);
    const double left = static_cast<double>(job.total_steps - job.step) / *steps_per_second;
    // What is further away than that nobody can know.
    if (job.total_steps > 0 && left < 1e9) {
      tail += "  ETA " + DurationText(std::chrono::seconds(std::llround(std::ceil(left))));
    }
  }
  // Why a job waits is worth more than how far it had come.
  if (!job.reason.empty() && !job.has_ended()) tail += "  " + Excerpt(job.reason);
  if (columns == 0) return head + steps + epoch + tail;
  std::string bar;
  const std::size_t rest = head.size() + 1 + steps.size() + tail.size();
  if (job.total_steps > 0 && rest + kShortestBar <= columns) {
    // A bar tells more than the epoch.
    if (rest + epoch.size() + kShortestBar > columns) epoch.clear();
    const std::size_t room = std::min(kLongestBar, columns - rest - epoch.size());
    bar = Bar(static_cast<double>(job.step) / static_cast<double>(job.total_steps), room) + " ";
  }
  std::string line = head + bar + steps + epoch + tail;
  if (line.size() <= columns) return line;
  line.resize(columns);
  // Half a character is none.
  while (!IsValidUtf8(line)) line.pop_back();
  return line;
}

std::string EndLine(const JobView& job) {
  std::string line = Format("job {} {}  {}", job.id, job.state, StepsText(job));
  if (job.loss) line += Format("  loss {:.4f}", *job.loss);
  line += MetricText(job);
  if (!job.published_version.empty()) {
    line += Format("  published as version {} of {}", job.published_version, job.model);
  }
  if (!job.reason.empty()) line += "\n" + PrintableLines(job.reason);
  return line;
}

}  // namespace tandem::cli
