#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "server/jobs/job_service.h"
#include "server/jobs/state_lock.h"
#include "server/lifecycle/colocation_wiring.h"
#include "server/lifecycle/serve_options.h"
#include "server/memory/memory_account.h"
#include "server/repository/model_repository.h"
#include "server/repository/run_archive.h"

namespace tandem {

// Where the server keeps what is to outlive it; empty when nobody named a folder and the user has no home.
[[nodiscard]] std::filesystem::path StateFolder(const ServeOptions& options);

// The trainer that the options name, or the one beside this program.
[[nodiscard]] std::filesystem::path TrainerProgram(const ServeOptions& options);

// Has what is learnt of runs kept in the state directory, where this server is the only one: `training` has seen to
// that, or the lock that is returned does, and must live as long. What cannot be kept or read is said in the log.
[[nodiscard]] std::optional<jobs::StateLock> KeepRuns(const ServeOptions& options, bool training,
                                                      repository::RunArchive& runs);
// Writes it down.
void SaveRunsNow(repository::RunArchive& runs);

// Training as the options want it. When it is not wanted, or cannot be had and nobody named a folder for its state,
// there is none, and `why_off` says why; the server serves all the same. What was asked for by name and cannot be had
// is an error.
[[nodiscard]] Result<std::unique_ptr<jobs::JobService>> StartTraining(const ServeOptions& options,
                                                                      const Colocation& colocation,
                                                                      MemoryAccount& memory,
                                                                      repository::ModelRepository& repository,
                                                                      const Clock& clock, std::string& why_off);

}  // namespace tandem
