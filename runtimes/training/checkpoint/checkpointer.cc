#include "runtimes/training/checkpoint/checkpointer.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/base/thread_name.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".checkpoint";
constexpr std::string_view kPartialSuffix = ".partial";  // As DurableFile has it.

std::optional<std::int64_t> StepOf(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits =
      std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  std::int64_t step = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return step;
}

Result<CheckpointSize> Write(const fs::path& file, const Checkpoint& checkpoint) {
  try {
    return WriteCheckpoint(file, checkpoint);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "there is no memory to write '{}'", file.string());
  }
}

}  // namespace

Checkpointer::Checkpointer(fs::path folder, int keep, std::function<void(const SavedCheckpoint&)> saved)
    : folder_(std::move(folder)), keep_(std::max(1, keep)), saved_(std::move(saved)), thread_([this] { Run(); }) {
  RemovePartial();
}

Checkpointer::~Checkpointer() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

fs::path Checkpointer::FileOf(std::int64_t step) const {
  return folder_ / Format("{}{:09}{}", kPrefix, step, kSuffix);
}

std::vector<std::pair<std::int64_t, fs::path>> Checkpointer::Files() const {
  std::vector<std::pair<std::int64_t, fs::path>> files;
  std::error_code ec;
  for (fs::directory_iterator entry(folder_, ec), end; !ec && entry != end; entry.increment(ec)) {
    if (const auto step = StepOf(entry->path().filename())) files.emplace_back(*step, entry->path());
  }
  std::ranges::sort(files, std::greater());
  return files;
}

void Checkpointer::RemovePartial() const {
  std::error_code ec;
  for (fs::directory_iterator entry(folder_, ec), end; !ec && entry != end; entry.increment(ec)) {
    std::error_code ignored;
    const fs::path& file = entry->path();
    if (file.extension() == kPartialSuffix && StepOf(file.stem())) fs::remove(file, ignored);
  }
}

std::optional<LoadedCheckpoint> Checkpointer::LoadNewest(
    const std::function<void(const fs::path&, const Error&)>& skipped) const {
  for (const auto& [step, file] : Files()) {
    auto checkpoint = ReadCheckpoint(file);
    if (checkpoint) return LoadedCheckpoint{.step = step, .checkpoint = *std::move(checkpoint)};
    skipped(file, checkpoint.error());
  }
  return std::nullopt;
}

void Checkpointer::Save(std::int64_t step, Checkpoint checkpoint) {
  {
    const MutexLock lock(mu_);
    while (writing_ || waiting_) changed_.Wait(mu_);
    waiting_ = Work{.step = step, .checkpoint = std::move(checkpoint)};
  }
  changed_.NotifyAll();
}

void Checkpointer::Flush() {
  const MutexLock lock(mu_);
  while (writing_ || waiting_) changed_.Wait(mu_);
}

void Checkpointer::RemoveOld() const {
  const auto files = Files();
  std::error_code ec;
  for (std::size_t i = static_cast<std::size_t>(keep_); i < files.size(); ++i) fs::remove(files[i].second, ec);
}

void Checkpointer::Run() {
  NameThread("checkpoint");
  for (;;) {
    Work work;
    {
      const MutexLock lock(mu_);
      while (!waiting_ && !ending_) changed_.Wait(mu_);
      if (!waiting_) return;
      work = std::move(*waiting_);
      waiting_.reset();
      writing_ = true;
    }
    const fs::path file = FileOf(work.step);
    SavedCheckpoint saved{.step = work.step, .file = file, .size = Write(file, work.checkpoint)};
    // What the copy holds is given back before anybody waits for it.
    work = {};
    // Only when a newer one is safe may an older one go.
    if (saved.size) RemoveOld();
    saved_(saved);
    {
      const MutexLock lock(mu_);
      writing_ = false;
    }
    changed_.NotifyAll();
  }
}

}  // namespace tandem::training
