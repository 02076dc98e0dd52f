#include "server/jobs/job_folder.h"

#include <system_error>

namespace tandem::jobs {

namespace fs = std::filesystem;

JobFolder JobFolder::Of(const fs::path& state, JobId job) {
  return {.path = state / "jobs" / std::to_string(job)};
}

Status JobFolder::TakeModel(const fs::path& model) const {
  std::error_code ec;
  if (fs::exists(source_model(), ec)) return {};
  const fs::path aside = path / "source.partial";
  const auto failed = [&] {
    return Fail(ErrorCode::kInternal, "the model cannot be copied to '{}': {}", path.string(), ec.message());
  };
  fs::create_directories(path, ec);
  if (!ec) fs::remove_all(aside, ec);
  if (!ec) fs::copy(model.parent_path(), aside, fs::copy_options::recursive, ec);
  if (!ec && model.filename() != "model.onnx") fs::rename(aside / model.filename(), aside / "model.onnx", ec);
  if (!ec) fs::rename(aside, source(), ec);
  if (ec) return failed();
  return {};
}

}  // namespace tandem::jobs
