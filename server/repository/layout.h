#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::repository {

// What tells that a file has changed.
struct FileStamp {
  std::string path;  // Relative to the model's folder.
  std::int64_t modified_ns = 0;
  std::uint64_t size = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A model as it lies on disk. Every path in it is free of links that lead out of `root`.
struct ModelFolder {
  std::string name;
  std::filesystem::path root;         // The repository, canonical.
  std::filesystem::path folder;       // The model's folder, canonical.
  std::filesystem::path config_file;  // Empty when there is none.
  FileStamp config_stamp;
  std::vector<FileStamp> shared_files;  // What else all versions depend on: labels, warm-up data.
  std::map<std::int64_t, std::vector<FileStamp>> versions;

  [[nodiscard]] bool SameFiles(const ModelFolder& other) const {
    return folder == other.folder && config_stamp == other.config_stamp && shared_files == other.shared_files &&
           versions == other.versions;
  }
  [[nodiscard]] std::vector<std::int64_t> VersionNumbers() const;
};

// What the repositories hold. A model that cannot be read as one has its error in place.
struct RepositoryScan {
  std::map<std::string, Result<ModelFolder>> models;
  std::vector<std::string> ignored;  // Folders whose names cannot be a model's, in words.
};

// Lists every model below the roots. A root that cannot be read is an error of the whole scan, so that a disk that is
// away for a moment is not taken for an empty one. Folders whose names start with '.' are passed over.
[[nodiscard]] Result<RepositoryScan> ScanRepositories(const std::vector<std::filesystem::path>& roots);

// One model by name: kNotFound when no root has it, an error naming both places when two have it.
[[nodiscard]] Result<ModelFolder> FindModelFolder(const std::vector<std::filesystem::path>& roots,
                                                  std::string_view name);

// The folder `folder` as a model, not below any repository: itself is the root. For files that came with a load call.
[[nodiscard]] Result<ModelFolder> ReadLooseFolder(std::string name, const std::filesystem::path& folder);

// The formats that a version's file can have.
enum class ModelFormat { kOnnx, kTensorRtPlan };

struct ModelFile {
  std::filesystem::path path;
  ModelFormat format = ModelFormat::kOnnx;
};

// The file of one version: `default_filename` when given, else model.onnx or model.plan.
[[nodiscard]] Result<ModelFile> FindModelFile(const ModelFolder& model, std::int64_t version,
                                              std::string_view default_filename);

// `relative` below `base`, which lies in the model's folder: one file that must exist and, with all links followed,
// lie below the repository's root. `what` names it in the error.
[[nodiscard]] Result<std::filesystem::path> ConfinedFile(const ModelFolder& model, const std::filesystem::path& base,
                                                         std::string_view relative, std::string_view what);

}  // namespace tandem::repository
