#include "loadgen/server_metrics.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

// One line: name{label="value",…} number [timestamp].
struct Sample {
  std::string_view name;
  std::string model, job, reason, cause, le;  // Of the labels of these names.
  double value = 0;
};

// A text from a stranger must not make us keep more than this.
constexpr std::size_t kMaxSeries = 10'000;

bool IsSpace(char c) {
  return c == ' ' || c == '\t';
}

void SkipSpace(std::string_view& text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
}

std::string_view TakeName(std::string_view& text) {
  std::size_t end = 0;
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
  };
  while (end < text.size() && part(text[end])) ++end;
  const std::string_view name = text.substr(0, end);
  text.remove_prefix(end);
  return name;
}

std::optional<std::string> TakeQuoted(std::string_view& text) {
  if (!text.starts_with('"')) return std::nullopt;
  text.remove_prefix(1);
  std::string value;
  while (!text.empty() && text.front() != '"') {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      if (text.empty()) return std::nullopt;
      c = text.front() == 'n' ? '\n' : text.front();
      text.remove_prefix(1);
    }
    value += c;
  }
  if (text.empty()) return std::nullopt;
  text.remove_prefix(1);
  return value;
}

// False when the braces hold something else than labels.
bool TakeLabels(std::string_view& text, Sample& sample) {
  text.remove_prefix(1);
  while (true) {
    SkipSpace(text);
    if (text.starts_with('}')) break;
    const std::string_view label = TakeName(text);
    SkipSpace(text);
    if (label.empty() || !text.starts_with('=')) return false;
    text.remove_prefix(1);
    SkipSpace(text);
    std::optional<std::string> value = TakeQuoted(text);
    if (!value) return false;
    if (label == "model") {
      sample.model = *std::move(value);
    } else if (label == "job") {
      sample.job = *std::move(value);
    } else if (label == "reason") {
      sample.reason = *std::move(value);
    } else if (label == "cause") {
      sample.cause = *std::move(value);
    } else if (label == "le") {
      sample.le = *std::move(value);
    }
    SkipSpace(text);
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  text.remove_prefix(1);
  return true;
}

std::optional<double> TakeNumber(std::string_view text) {
  const std::size_t end = text.find_first_of(" \t");
  std::string_view number = text.substr(0, end);
  if (number.starts_with('+')) number.remove_prefix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (number.empty() || error != std::errc() || rest != number.data() + number.size()) return std::nullopt;
  return value;
}

std::optional<Sample> ParseSample(std::string_view line) {
  Sample sample;
  sample.name = TakeName(line);
  if (sample.name.empty()) return std::nullopt;
  SkipSpace(line);
  if (line.starts_with('{')) {
    if (!TakeLabels(line, sample)) return std::nullopt;
    SkipSpace(line);
  }
  const std::optional<double> value = TakeNumber(line);
  if (!value) return std::nullopt;
  sample.value = *value;
  return sample;
}

double* FieldOf(ServerCounters& counters, std::string_view name) {
  if (name == "nv_inference_request_success") return &counters.requests;
  if (name == "nv_inference_queue_duration_us") return &counters.queue_us;
  if (name == "nv_inference_request_duration_us") return &counters.total_us;
  for (const std::string_view part : {"input", "infer", "output"}) {
    if (name.starts_with("nv_inference_compute_") && name.substr(21) == std::string(part) + "_duration_us") {
      return &counters.compute_us;
    }
  }
  return nullptr;
}

void Take(const Sample& sample, ServerMetrics& metrics) {
  ServerCounters unused;
  if (sample.name.starts_with("tandem_")) metrics.ours = true;
  if (!std::isfinite(sample.value)) return;
  if (sample.name == "tandem_training_iterations_total") {
    metrics.jobs[sample.job].iterations += sample.value;
  } else if (sample.name == "tandem_training_held_seconds_total") {
    metrics.jobs[sample.job].held_s[sample.reason] += sample.value;
  } else if (sample.name == "tandem_slo_missed_by_cause_total") {
    const double missed = metrics.missed_by_training.value_or(0);
    // What may be its fault is taken to be.
    const bool blamed = sample.cause == "training" || sample.cause == "unknown";
    metrics.missed_by_training = missed + (blamed ? sample.value : 0);
  } else if (sample.name == "tandem_gate_acknowledgement_seconds_bucket") {
    const std::optional<double> bound = TakeNumber(sample.le);
    if (bound && !std::isnan(*bound)) metrics.acknowledgements[*bound] += sample.value;
  } else if (FieldOf(unused, sample.name) != nullptr) {
    *FieldOf(metrics.models[sample.model], sample.name) += sample.value;
  }
}

}  // namespace

double TrainingCounters::held() const {
  double seconds = 0;
  for (const auto& [reason, held] : held_s) seconds += held;
  return seconds;
}

Result<ServerMetrics> ParseServerMetrics(std::string_view text) {
  ServerMetrics metrics;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    SkipSpace(line);
    if (line.empty() || line.front() == '#') continue;
    const std::optional<Sample> sample = ParseSample(line);
    if (!sample) return Invalid("line {} of the metrics is no sample: '{}'", number, Excerpt(line));
    Take(*sample, metrics);
    if (metrics.models.size() + metrics.jobs.size() + metrics.acknowledgements.size() > kMaxSeries) {
      return Fail(ErrorCode::kTooLarge, "the metrics name more than {} models, jobs and bounds", kMaxSeries);
    }
  }
  return metrics;
}

std::vector<ServerView> Between(const ServerMetrics& before, const ServerMetrics& after) {
  std::vector<ServerView> views;
  for (const auto& [model, now] : after.models) {
    const auto then = before.models.find(model);
    const ServerCounters start = then == before.models.end() ? ServerCounters{} : then->second;
    const double requests = now.requests - start.requests;
    if (requests < 0.5 || now.total_us < start.total_us) continue;
    const auto mean_ms = [&](double a, double b) { return (b - a) / requests / 1e3; };
    views.push_back({.model = model,
                     .requests = static_cast<std::uint64_t>(std::llround(requests)),
                     .queue_ms = mean_ms(start.queue_us, now.queue_us),
                     .compute_ms = mean_ms(start.compute_us, now.compute_us),
                     .total_ms = mean_ms(start.total_us, now.total_us)});
  }
  return views;
}

std::optional<double> PercentileBound(const CountsUpTo& before, const CountsUpTo& after, double percent) {
  const auto counted = [&](double bound, double now) {
    const auto then = before.find(bound);
    return now - (then == before.end() ? 0 : then->second);
  };
  if (after.empty()) return std::nullopt;
  const double all = counted(after.rbegin()->first, after.rbegin()->second);
  if (all < 0.5) return std::nullopt;
  std::optional<double> largest;
  for (const auto& [bound, now] : after) {
    if (std::isfinite(bound)) largest = bound;
    if (counted(bound, now) >= all * percent / 100) break;
  }
  return largest;
}

}  // namespace tandem::loadgen
