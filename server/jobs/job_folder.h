#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "server/jobs/job_record.h"

namespace tandem::jobs {

// Where a job's files lie. What is trained from is copied there, so that the job does not depend on what becomes of the
// version it began with.
struct JobFolder {
  std::filesystem::path path;

  [[nodiscard]] static JobFolder Of(const std::filesystem::path& state, JobId job);

  [[nodiscard]] std::filesystem::path source() const { return path / "source"; }
  [[nodiscard]] std::filesystem::path source_model() const { return source() / "model.onnx"; }
  [[nodiscard]] std::filesystem::path run_file() const { return path / "run.json"; }
  [[nodiscard]] std::filesystem::path result() const { return path / "model.onnx"; }
  // What the operators of its last trainer took.
  [[nodiscard]] std::filesystem::path profile() const { return path / "profile.json"; }
  // Of the run that measures what is served by this job's evaluation.
  [[nodiscard]] std::filesystem::path measuring() const { return path / "measuring"; }

  // Copies the model and whatever lies beside it, unless that was done before. All or nothing.
  [[nodiscard]] Status TakeModel(const std::filesystem::path& model) const;
};

}  // namespace tandem::jobs
