#include "server/repository/layout.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <sys/stat.h>

#include "api/base/errno_text.h"
#include "api/base/format.h"
#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

namespace fs = std::filesystem;

// A version folder holds a model and its weights; more than this is not one, and must not make every poll slow.
constexpr std::size_t kMaxStampedFiles = 10'000;
constexpr int kMaxStampedDepth = 8;

bool IsBelow(const fs::path& path, const fs::path& root) {
  const auto [root_end, rest] = std::ranges::mismatch(root, path);
  return root_end == root.end() && rest != path.end();
}

// `path` with every link followed, which must lie below `root`.
Result<fs::path> Confine(const fs::path& path, const fs::path& root, std::string_view what) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) return Invalid("{} '{}' cannot be opened: {}", what, PathText(path), error.message());
  if (!IsBelow(real, root)) {
    return Invalid("{} '{}' leads out of the model repository '{}', which is refused", what, PathText(path),
                   PathText(root));
  }
  return real;
}

Result<FileStamp> Stamp(const fs::path& file, std::string name) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) {
    return Invalid("'{}' cannot be read: {}", PathText(file), ErrnoText());
  }
  return FileStamp{std::move(name), status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec,
                   static_cast<std::uint64_t>(status.st_size), status.st_ino};
}

// The entries of a folder, by name; links to folders are entries, not entered.
Result<std::vector<fs::directory_entry>> Entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  if (error) return Invalid("folder '{}' cannot be read: {}", PathText(folder), error.message());
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path(); });
  return entries;
}

// Adds the stamps of the files below `folder`. A file that goes away meanwhile is left out: its absence is a change.
Status StampFolder(const fs::path& folder, const std::string& prefix, int depth, std::vector<FileStamp>& stamps) {
  if (depth > kMaxStampedDepth) return Invalid("folder '{}' is nested too deeply", PathText(folder));
  TANDEM_ASSIGN(const auto entries, Entries(folder));
  for (const fs::directory_entry& entry : entries) {
    std::error_code ignored;
    const std::string name = prefix + entry.path().filename().string();
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      TANDEM_TRY(StampFolder(entry.path(), name + "/", depth + 1, stamps));
    } else if (entry.is_regular_file(ignored)) {
      if (stamps.size() >= kMaxStampedFiles) {
        return Invalid("folder '{}' holds more than {} files", PathText(folder), kMaxStampedFiles);
      }
      if (auto stamp = Stamp(entry.path(), name)) stamps.push_back(std::move(*stamp));
    }
  }
  return {};
}

Status ReadEntry(const fs::directory_entry& entry, ModelFolder& model) {
  const std::string name = entry.path().filename().string();
  std::error_code ignored;
  if (entry.is_directory(ignored)) {
    if (const auto version = ParseVersionFolder(name)) {
      TANDEM_TRY(Confine(entry.path(), model.root, "version folder"));
      return StampFolder(entry.path(), "", 0, model.versions[*version]);
    }
    if (name == "warmup") {
      TANDEM_TRY(Confine(entry.path(), model.root, "warm-up folder"));
      return StampFolder(entry.path(), "warmup/", 0, model.shared_files);
    }
    return {};
  }
  const bool is_config = name == "config.pbtxt" || name == "config.json";
  if (!entry.is_regular_file(ignored)) {
    if (is_config) return Invalid("'{}' is not a regular file", PathText(entry.path()));
    return {};
  }
  TANDEM_ASSIGN(FileStamp stamp, Stamp(entry.path(), name));
  if (!is_config) {
    model.shared_files.push_back(std::move(stamp));
    return {};
  }
  if (!model.config_file.empty()) {
    return Invalid("folder '{}' has both '{}' and '{}'; keep one", PathText(model.folder),
                   model.config_file.filename().string(), name);
  }
  TANDEM_TRY(Confine(entry.path(), model.root, "configuration file"));
  model.config_file = entry.path();
  model.config_stamp = std::move(stamp);
  return {};
}

Result<ModelFolder> ReadModelFolder(std::string name, fs::path root, fs::path folder) {
  ModelFolder model{.name = std::move(name), .root = std::move(root), .folder = std::move(folder)};
  TANDEM_ASSIGN(const auto entries, Entries(model.folder));
  for (const fs::directory_entry& entry : entries) TANDEM_TRY(ReadEntry(entry, model));
  return model;
}

Result<fs::path> CanonicalRoot(const fs::path& root) {
  std::error_code error;
  fs::path real = fs::canonical(root, error);
  if (!error && !fs::is_directory(real, error) && !error) error = std::make_error_code(std::errc::not_a_directory);
  if (error) {
    return Fail(ErrorCode::kNotFound, "model repository '{}' cannot be read: {}", PathText(root), error.message());
  }
  return real;
}

Result<ModelFolder> ReadModelIn(const fs::path& root, const std::string& name) {
  TANDEM_ASSIGN(fs::path folder, Confine(root / name, root, "model folder"));
  return ReadModelFolder(name, root, std::move(folder));
}

Error InTwoPlaces(const std::string& name, const fs::path& first, const fs::path& second) {
  return {ErrorCode::kInvalidArgument, Format("model '{}' lies in two model repositories, '{}' and '{}'; keep one",
                                              name, PathText(first), PathText(second))};
}

}  // namespace

std::vector<std::int64_t> ModelFolder::VersionNumbers() const {
  std::vector<std::int64_t> numbers;
  numbers.reserve(versions.size());
  for (const auto& [version, stamps] : versions) numbers.push_back(version);
  return numbers;
}

Result<RepositoryScan> ScanRepositories(const std::vector<fs::path>& roots) {
  RepositoryScan scan;
  std::map<std::string, fs::path> first_seen;
  for (const fs::path& given : roots) {
    TANDEM_ASSIGN(const fs::path root, CanonicalRoot(given));
    TANDEM_ASSIGN(const auto entries, Entries(root));
    for (const fs::directory_entry& entry : entries) {
      const std::string name = entry.path().filename().string();
      std::error_code ignored;
      if (name.starts_with('.') || !entry.is_directory(ignored)) continue;
      if (const Status usable = CheckModelName(name); !usable) {
        scan.ignored.push_back(
            Format("folder '{}' is passed over: {}", PathText(entry.path()), usable.error().message));
        continue;
      }
      const auto [seen, is_new] = first_seen.emplace(name, root);
      if (is_new) {
        scan.models.emplace(name, ReadModelIn(root, name));
      } else if (seen->second != root) {
        scan.models.insert_or_assign(name, std::unexpected(InTwoPlaces(name, seen->second, root)));
      }
    }
  }
  return scan;
}

Result<ModelFolder> FindModelFolder(const std::vector<fs::path>& roots, std::string_view name) {
  TANDEM_TRY(CheckModelName(name));
  const std::string folder(name);
  fs::path found;
  for (const fs::path& given : roots) {
    TANDEM_ASSIGN(const fs::path root, CanonicalRoot(given));
    std::error_code ignored;
    if (!fs::is_directory(root / folder, ignored)) continue;
    if (!found.empty() && found != root) return std::unexpected(InTwoPlaces(folder, found, root));
    found = root;
  }
  if (found.empty()) {
    return Fail(ErrorCode::kNotFound, "model '{}' is in no model repository of this server", Quotable(name));
  }
  return ReadModelIn(found, folder);
}

Result<ModelFolder> ReadLooseFolder(std::string name, const fs::path& folder) {
  TANDEM_ASSIGN(fs::path real, CanonicalRoot(folder));
  return ReadModelFolder(std::move(name), real, real);
}

Result<ModelFile> FindModelFile(const ModelFolder& model, std::int64_t version, std::string_view default_filename) {
  const fs::path folder = model.folder / std::to_string(version);
  if (!default_filename.empty()) {
    if (default_filename.find_first_of(std::string_view("/\\\0", 3)) != std::string_view::npos ||
        default_filename == "." || default_filename == "..") {
      return Invalid("default_model_filename '{}' must be the name of a file in the version folder",
                     Quotable(default_filename));
    }
    TANDEM_ASSIGN(fs::path path, ConfinedFile(model, folder, default_filename, "model file"));
    const bool plan = default_filename.ends_with(".plan");
    return ModelFile{std::move(path), plan ? ModelFormat::kTensorRtPlan : ModelFormat::kOnnx};
  }
  constexpr std::array<std::pair<std::string_view, ModelFormat>, 2> kKnown = {
      {{"model.onnx", ModelFormat::kOnnx}, {"model.plan", ModelFormat::kTensorRtPlan}}};
  for (const auto& [name, format] : kKnown) {
    std::error_code ignored;
    if (!fs::is_symlink(folder / name, ignored) && !fs::exists(folder / name, ignored)) continue;
    TANDEM_ASSIGN(fs::path path, ConfinedFile(model, folder, name, "model file"));
    return ModelFile{std::move(path), format};
  }
  return Invalid("version folder '{}' has neither 'model.onnx' nor 'model.plan'", PathText(folder));
}

Result<fs::path> ConfinedFile(const ModelFolder& model, const fs::path& base, std::string_view relative,
                              std::string_view what) {
  const fs::path asked(relative);
  if (relative.empty() || relative.contains('\0') || asked.is_absolute() ||
      std::ranges::find(asked, fs::path("..")) != asked.end()) {
    return Invalid("{} '{}' must be a relative path without '..'", what, Quotable(relative));
  }
  TANDEM_TRY(Confine(base / asked, model.root, what));
  std::error_code error;
  if (!fs::is_regular_file(base / asked, error)) {
    return Invalid("{} '{}' is not a file", what, PathText(base / asked));
  }
  return base / asked;
}

}  // namespace tandem::repository
