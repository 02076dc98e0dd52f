#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "server/repository/model_repository.h"
#include "server/repository/session_factory.h"

namespace tandem::jobs {

// Puts trained models into the repository as the next version, and takes them out again. Calls block while models load:
// one thread for all of them, so that two jobs that publish the same model get a version each.
class Publisher {
 public:
  // All borrowed; they outlive it.
  Publisher(repository::ModelRepository& repository, repository::SessionFactory& factory,
            std::vector<std::filesystem::path> roots)
      : repository_(repository), factory_(factory), roots_(std::move(roots)) {}

  // Checks that the file loads and takes and gives tensors of the same names and types as the served version, adds it
  // as a version and waits until it is served. Gives the version. On an error nothing has changed.
  [[nodiscard]] Result<std::string> Publish(const std::string& model, const std::filesystem::path& file);

  // Takes a version out; the ones below it are served again. kConflict when there is no other. The files are moved to
  // `keep`.
  [[nodiscard]] Status RollBack(const std::string& model, const std::string& version,
                                const std::filesystem::path& keep);

 private:
  [[nodiscard]] Status CheckFile(const std::string& model, const std::filesystem::path& file) const;

  repository::ModelRepository& repository_;
  repository::SessionFactory& factory_;
  const std::vector<std::filesystem::path> roots_;
};

}  // namespace tandem::jobs
