#include "server/jobs/submission_check.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "api/base/format.h"
#include "runtimes/onnx/node_list.h"
#include "runtimes/training/supported_ops.h"
#include "server/repository/layout.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

// As many as a person would want to read of.
constexpr std::size_t kMostNamed = 10;

Status CheckOperators(const fs::path& model) {
  TANDEM_ASSIGN(const auto nodes, ListOnnxNodes(model));
  std::string named;
  std::size_t count = 0;
  for (const OnnxNode& node : nodes) {
    if (node.domain.empty() && training::IsSupportedOp(node.op)) continue;
    if (++count > kMostNamed) continue;
    const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
    named += Format("{}{} (node '{}')", named.empty() ? "" : ", ", op, node.name);
  }
  if (count == 0) return {};
  const std::string more = count > kMostNamed ? Format(" and {} more", count - kMostNamed) : "";
  return Fail(ErrorCode::kUnsupported, "/model cannot be trained: operators that training does not know: {}{}", named,
              more);
}

Status CheckData(const DataSpec& data, const std::string& pointer, const fs::path& root) {
  if (data.kind == DataKind::kSynthetic) return {};
  if (root.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "{}: the server was started without --data-root, so no job can read data",
                pointer);
  }
  std::error_code ec;
  const fs::path real_root = fs::canonical(root, ec);
  if (ec) return Fail(ErrorCode::kInternal, "the data root '{}' cannot be opened: {}", root.string(), ec.message());
  const fs::path real = fs::canonical(root / data.path, ec);
  if (ec) return Invalid("{}/path is '{}': {}", pointer, data.path, ec.message());
  const auto [in_root, in_path] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  if (in_root != real_root.end())
    return Invalid("{}/path is '{}', which lies outside the data root", pointer, data.path);
  return {};
}

}  // namespace

Result<TrainingSource> CheckSubmission(const TrainingJob& job, const JobOptions& options,
                                       const repository::ModelRepository& repository) {
  std::string version = job.model_version;
  if (version.empty()) {
    TANDEM_ASSIGN(const std::vector<std::string> versions, repository.Versions(job.model));
    if (versions.empty()) return Fail(ErrorCode::kNotFound, "/model is '{}', which is not served", job.model);
    version = versions.back();
  }
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || stop != version.data() + version.size()) {
    return Invalid("/model/version is '{}'; it must be a number", version);
  }
  TANDEM_ASSIGN(const repository::ModelFolder folder, repository::FindModelFolder(options.repositories, job.model));
  if (!folder.versions.contains(number)) {
    return Fail(ErrorCode::kNotFound, "/model/version is '{}'; model '{}' has no such version", version, job.model);
  }
  TANDEM_ASSIGN(const repository::ModelFile file, repository::FindModelFile(folder, number, ""));
  if (file.format != repository::ModelFormat::kOnnx) {
    return Fail(ErrorCode::kUnsupported, "/model is '{}', which is no ONNX model and cannot be trained", job.model);
  }
  TANDEM_TRY(CheckOperators(file.path));
  TANDEM_TRY(CheckData(job.data, "/data", options.data_root));
  if (job.evaluation.data) TANDEM_TRY(CheckData(*job.evaluation.data, "/evaluation/data", options.data_root));
  return TrainingSource{.model = file.path, .version = version};
}

}  // namespace tandem::jobs
