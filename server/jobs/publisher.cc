#include "server/jobs/publisher.h"

#include <algorithm>
#include <format>
#include <system_error>

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

// Why a version that should be served is not.
std::string WhyNot(const repository::ModelRepository& repository, const std::string& model,
                   const std::string& version) {
  for (const auto& entry : repository.Index(/*ready_only=*/false)) {
    if (entry.name == model && entry.version == version && !entry.reason.empty()) return entry.reason;
  }
  return "its version policy does not serve it, or the model is not loaded";
}

bool SameTensors(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  return std::ranges::equal(
      a, b, [](const TensorSpec& x, const TensorSpec& y) { return x.name == y.name && x.type == y.type; });
}

// Copies beside its place and renames, so that nobody finds half of it.
Status PlaceVersion(const fs::path& file, const fs::path& folder) {
  const fs::path aside = folder.parent_path() / std::format(".{}.partial", folder.filename().string());
  std::error_code ec;
  fs::remove_all(aside, ec);
  fs::create_directory(aside, ec);
  if (!ec) fs::copy_file(file, aside / "model.onnx", ec);
  if (!ec) fs::rename(aside, folder, ec);
  if (!ec) return {};
  const std::string reason = ec.message();
  fs::remove_all(aside, ec);
  return Fail(ErrorCode::kInternal, "the version cannot be written to '{}': {}", folder.string(), reason);
}

}  // namespace

Status Publisher::CheckFile(const std::string& model, const fs::path& file) const {
  auto session = factory_.Create({.model = model, .version = 0, .file = file, .allowed_root = file.parent_path()});
  if (!session) return Fail(ErrorCode::kInternal, "the trained model does not load: {}", session.error().message);
  const auto served = repository_.Find(model, "");
  if (!served) return {};  // Nothing to compare with; it is up to the repository to serve it.
  const ModelSignature& before = (*served)->signature();
  const ModelSignature& after = (*session)->signature();
  if (!SameTensors(before.inputs, after.inputs) || !SameTensors(before.outputs, after.outputs)) {
    return Fail(ErrorCode::kConflict, "the trained model takes or gives other tensors than the served '{}'", model);
  }
  return {};
}

Result<std::string> Publisher::Publish(const std::string& model, const fs::path& file) {
  TANDEM_TRY(CheckFile(model, file));
  TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(roots_, model));
  const std::vector<std::int64_t> versions = folder.VersionNumbers();
  const std::int64_t next = versions.empty() ? 1 : std::ranges::max(versions) + 1;
  const fs::path place = folder.folder / std::to_string(next);
  TANDEM_TRY(PlaceVersion(file, place));
  std::string version = std::to_string(next);
  const Status scanned = repository_.Rescan();
  if (scanned && repository_.IsReady(model, version)) return version;
  const std::string why = scanned ? WhyNot(repository_, model, version) : scanned.error().message;
  std::error_code ec;
  fs::remove_all(place, ec);
  (void)repository_.Rescan();
  return Fail(ErrorCode::kConflict, "version {} of '{}' is not served and was taken back: {}", version, model, why);
}

Status Publisher::RollBack(const std::string& model, const std::string& version, const fs::path& keep) {
  TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(roots_, model));
  if (folder.versions.size() < 2) {
    return Fail(ErrorCode::kConflict, "version {} is the only one of '{}'", version, model);
  }
  std::error_code ec;
  fs::remove_all(keep, ec);
  fs::copy(folder.folder / version, keep, fs::copy_options::recursive, ec);
  if (!ec) fs::remove_all(folder.folder / version, ec);
  if (ec) {
    return Fail(ErrorCode::kInternal, "version {} of '{}' cannot be taken out: {}", version, model, ec.message());
  }
  return repository_.Rescan();
}

}  // namespace tandem::jobs
