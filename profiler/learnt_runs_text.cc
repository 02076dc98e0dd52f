#include "profiler/learnt_runs_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "api/base/format.h"

namespace tandem {
namespace {

constexpr std::string_view kFirstLine = "tandem learnt runs, format 2";
constexpr std::size_t kMaxRuns = 256;
constexpr std::size_t kMaxLine = 1024;
constexpr std::int64_t kLongest = std::int64_t{86'400} * 1'000'000'000;
constexpr double kMostSpread = 1e6;

bool IsPlain(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

// Takes the line up to the next end; nullopt when there is none, or it is too long.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const std::size_t end = text.substr(0, kMaxLine).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// Takes a word up to the next space, or the rest.
std::string_view TakeWord(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <typename T, typename... Base>
bool ReadNumber(std::string_view word, T& value, Base... base) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base...);
  return !word.empty() && error == std::errc() && end == word.data() + word.size();
}

// "version 3 0123456789abcdef the name", after its first word.
std::optional<LearntVersion> ReadVersion(std::string_view line) {
  LearntVersion version;
  if (!ReadNumber(TakeWord(line), version.version) || version.version < 0) return std::nullopt;
  if (!ReadNumber(TakeWord(line), version.fingerprint, 16)) return std::nullopt;
  if (line.empty() || !IsPlain(line)) return std::nullopt;
  version.model = line;
  return version;
}

// "run 8 1234567 1.25", or "narrow …" of a run on one thread, after its first word.
std::optional<LearntRun> ReadRun(std::string_view line) {
  LearntRun run;
  std::int64_t typical = 0;
  const bool read = ReadNumber(TakeWord(line), run.elements) && ReadNumber(TakeWord(line), typical) &&
                    ReadNumber(TakeWord(line), run.spread) && line.empty();
  // Written so that NaN is refused too.
  if (!read || run.elements < 0 || typical < 1 || typical > kLongest ||
      !(run.spread >= 1 && run.spread <= kMostSpread)) {
    return std::nullopt;
  }
  run.typical = std::chrono::nanoseconds(typical);
  return run;
}

// Takes the last line of the text and compares it with what stands before.
Status TakeChecksum(std::string_view& text) {
  constexpr std::string_view kEnd = "end ";
  constexpr std::size_t kDigits = 16;
  if (text.size() < kEnd.size() + kDigits + 1 || !text.ends_with('\n')) return Invalid("it has no end");
  std::string_view last = text.substr(text.size() - kEnd.size() - kDigits - 1);
  text.remove_suffix(last.size());
  last.remove_suffix(1);
  std::uint64_t sum = 0;
  if (!last.starts_with(kEnd) || !ReadNumber(last.substr(kEnd.size()), sum, 16)) return Invalid("it has no end");
  if (sum != HashText(text)) return Invalid("its checksum is wrong");
  return {};
}

void WriteRuns(std::string_view word, const std::vector<LearntRun>& runs, std::string& text) {
  for (const LearntRun& run : runs) {
    const std::int64_t typical = std::clamp<std::int64_t>(run.typical.count(), 1, kLongest);
    text += Format("{} {} {} {:.4f}\n", word, run.elements, typical, std::clamp(run.spread, 1.0, kMostSpread));
  }
}

}  // namespace

std::uint64_t HashText(std::string_view text, std::uint64_t seed) {
  for (const unsigned char c : text) seed = (seed ^ c) * 0x100000001b3;
  return seed;
}

std::string WriteLearntRuns(const LearntRuns& learnt) {
  std::string text = Format("{}\nsetting {}\n", kFirstLine, learnt.setting);
  for (const LearntVersion& version : learnt.versions) {
    if (version.model.empty() || !IsPlain(version.model) || (version.runs.empty() && version.narrow.empty())) continue;
    text += Format("version {} {:016x} {}\n", version.version, version.fingerprint, version.model);
    WriteRuns("run", version.runs, text);
    WriteRuns("narrow", version.narrow, text);
  }
  return text + Format("end {:016x}\n", HashText(text));
}

Result<LearntRuns> ReadLearntRuns(std::string_view text) {
  if (text.size() > kMaxLearntBytes) return Invalid("it has {} bytes, more than {}", text.size(), kMaxLearntBytes);
  if (!text.starts_with(kFirstLine)) return Invalid("its first line is not '{}'", kFirstLine);
  TANDEM_TRY(TakeChecksum(text));
  LearntRuns learnt;
  for (int number = 1; !text.empty(); ++number) {
    std::optional<std::string_view> line = TakeLine(text);
    const auto wrong = [number] { return Invalid("line {} is not understood", number); };
    if (!line) return wrong();
    if (number == 1) {
      if (*line != kFirstLine) return wrong();
      continue;
    }
    const std::string_view kind = TakeWord(*line);
    if (number == 2) {
      if (kind != "setting" || !IsPlain(*line)) return wrong();
      learnt.setting = *line;
    } else if (kind == "version") {
      auto version = ReadVersion(*line);
      if (!version || learnt.versions.size() == kMaxLearntVersions) return wrong();
      learnt.versions.push_back(*std::move(version));
    } else if (kind == "run" || kind == "narrow") {
      const auto run = ReadRun(*line);
      if (!run || learnt.versions.empty()) return wrong();
      LearntVersion& version = learnt.versions.back();
      if (kind == "run" && !version.narrow.empty()) return wrong();
      std::vector<LearntRun>& runs = kind == "run" ? version.runs : version.narrow;
      if (runs.size() == kMaxRuns || (!runs.empty() && runs.back().elements >= run->elements)) return wrong();
      runs.push_back(*run);
    } else {
      return wrong();
    }
  }
  return learnt;
}

}  // namespace tandem
