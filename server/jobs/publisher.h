#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/repository/model_repository.h"

namespace tandem::jobs {

struct PublishedVersion {
  std::string version;
  std::string note;  // What clients will notice besides the weights; usually empty.
};

// Puts trained models into the repository as the next version, and takes them out again. Only the model in question is
// loaded again, in every control mode. Calls block while it loads: one thread for all of them, so that two jobs that
// publish the same model get a version each.
class Publisher {
 public:
  // The repository is borrowed and outlives it.
  Publisher(repository::ModelRepository& repository, std::vector<std::filesystem::path> roots)
      : repository_(repository), roots_(std::move(roots)) {}

  // Checks that the file loads and fits in place of the served version (server/jobs/succession_check.h), adds it as a
  // version and waits until it is served. A file that is the newest version already, because a server ended just then,
  // is not added twice. On an error nothing has changed; kUnavailable and kNotFound when the model is not loaded (yet).
  [[nodiscard]] Result<PublishedVersion> Publish(const std::string& model, const std::filesystem::path& file,
                                                 const std::optional<HeadSpec>& head);

  // Takes a version out that holds `file`; the ones below it are served again. kConflict when there is no other. On an
  // error nothing has changed. One that has gone already, or holds something else by now, is no error, and stays.
  [[nodiscard]] Status RollBack(const std::string& model, const std::string& version,
                                const std::filesystem::path& file);

  // Whether the newest version of the model holds the file.
  [[nodiscard]] bool IsNewest(const std::string& model, const std::filesystem::path& file) const;

  // The file of the version that is served now.
  [[nodiscard]] Result<std::filesystem::path> ServedFile(const std::string& model) const;

 private:
  // Loads the model and says why when the version is not served then.
  [[nodiscard]] Status Serve(const std::string& model, const std::string& version);

  repository::ModelRepository& repository_;
  const std::vector<std::filesystem::path> roots_;
};

// Whether two files hold the same; false when one cannot be read.
[[nodiscard]] bool SameBytes(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace tandem::jobs
