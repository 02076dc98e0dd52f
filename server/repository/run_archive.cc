#include "server/repository/run_archive.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

namespace fs = std::filesystem;

Result<std::string> ReadBounded(const fs::path& file) {
  std::error_code ec;
  if (!fs::is_regular_file(file, ec)) return Invalid("it is not a file");
  std::ifstream in(file, std::ios::binary);
  const std::uintmax_t size = fs::file_size(file, ec);
  if (ec || !in) return Invalid("it cannot be read");
  if (size > kMaxLearntBytes) return Invalid("it has {} bytes; at most {} are allowed", size, kMaxLearntBytes);
  std::string text(static_cast<std::size_t>(size), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof())) return Invalid("it cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

Status WriteAside(const fs::path& file, const std::string& text) {
  fs::path aside = file;
  aside += ".new";
  std::ofstream out(aside, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code ec;
  if (out) fs::rename(aside, file, ec);
  if (out && !ec) return {};
  std::error_code ignored;
  fs::remove(aside, ignored);
  return Fail(ErrorCode::kUnavailable, "'{}' cannot be written{}", PathText(file), ec ? ": " + ec.message() : "");
}

}  // namespace

Status RunArchive::Open(fs::path file) {
  const MutexLock lock(mu_);
  file_ = std::move(file);
  std::error_code ec;
  if (fs::symlink_status(file_, ec).type() == fs::file_type::not_found) return {};
  auto text = ReadBounded(file_);
  auto learnt = text ? ReadLearntRuns(*text) : Result<LearntRuns>(std::unexpected(text.error()));
  if (!learnt) {
    return Invalid("'{}' does not tell what runs take and is ignored: {}", PathText(file_), learnt.error().message);
  }
  saved_ = *std::move(text);
  if (learnt->setting != setting_) return {};
  for (LearntVersion& version : learnt->versions) {
    entries_.insert_or_assign(Key(std::move(version.model), version.version), Entry{.fingerprint = version.fingerprint,
                                                                                    .runs = std::move(version.runs),
                                                                                    .narrow = std::move(version.narrow),
                                                                                    .servable = {},
                                                                                    .habits = {}});
  }
  return {};
}

void RunArchive::Refresh(Entry& entry, Kept& kept) {
  auto servable = entry.servable.lock();
  if (!servable) return;
  const auto refresh = [&servable](RunWidth width, std::vector<LearntRun>& known) {
    if (std::vector<LearntRun> runs = servable->latency(width).Learnt(); !runs.empty()) known = std::move(runs);
  };
  refresh(RunWidth::kAll, entry.runs);
  refresh(RunWidth::kOne, entry.narrow);
  kept.push_back(std::move(servable));
}

std::shared_ptr<RequestHabits> RunArchive::HabitsOf(const std::string& model) const {
  const auto first = entries_.lower_bound({model, std::numeric_limits<std::int64_t>::min()});
  for (auto entry = first; entry != entries_.end() && entry->first.first == model; ++entry) {
    if (entry->second.habits != nullptr) return entry->second.habits;
  }
  return std::make_shared<RequestHabits>();
}

void RunArchive::MakeRoom() {
  if (entries_.size() < kMaxLearntVersions) return;
  // Whatever is not served goes first.
  const auto gone = std::ranges::find_if(entries_, [](const auto& named) { return named.second.servable.expired(); });
  entries_.erase(gone == entries_.end() ? entries_.begin() : gone);
}

void RunArchive::Adopt(const std::shared_ptr<Servable>& servable, std::uint64_t fingerprint) {
  Kept kept;
  const MutexLock lock(mu_);
  const Key key(servable->name(), servable->version());
  std::shared_ptr<RequestHabits> habits = HabitsOf(servable->name());
  servable->ShareHabits(habits);
  if (!entries_.contains(key)) MakeRoom();
  Entry& entry = entries_[key];
  Refresh(entry, kept);
  if (entry.fingerprint != fingerprint) {
    entry.runs.clear();
    entry.narrow.clear();
  }
  entry.fingerprint = fingerprint;
  entry.servable = servable;
  entry.habits = std::move(habits);
  const auto recall = [&servable](RunWidth width, const std::vector<LearntRun>& known) {
    for (const LearntRun& run : known) {
      servable->latency(width).Recall(run);
      servable->alone(width).Recall(run);
    }
  };
  recall(RunWidth::kAll, entry.runs);
  recall(RunWidth::kOne, entry.narrow);
}

Status RunArchive::Save() {
  Kept kept;
  const MutexLock lock(mu_);
  if (file_.empty()) return {};
  LearntRuns learnt{.setting = setting_, .versions = {}};
  for (auto& [key, entry] : entries_) {
    Refresh(entry, kept);
    if (entry.runs.empty() && entry.narrow.empty()) continue;
    learnt.versions.push_back({.model = key.first,
                               .version = key.second,
                               .fingerprint = entry.fingerprint,
                               .runs = entry.runs,
                               .narrow = entry.narrow});
  }
  if (learnt.versions.empty()) return {};
  std::string text = WriteLearntRuns(learnt);
  if (text == saved_) return {};
  TANDEM_TRY(WriteAside(file_, text));
  saved_ = std::move(text);
  return {};
}

}  // namespace tandem::repository
