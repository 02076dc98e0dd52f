#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "colocation/core_seats.h"
#include "runtimes/onnx/ort_environment.h"
#include "server/http/tls.h"
#include "server/lifecycle/memory_budgets.h"
#include "server/lifecycle/serve_options.h"
#include "server/repository/model_repository.h"

namespace tandem {

// What the options of a server mean to its parts. Called while it starts, by one thread; the options have been checked.

[[nodiscard]] std::chrono::milliseconds Milliseconds(double seconds);
[[nodiscard]] std::optional<std::chrono::microseconds> DefaultSlo(const ServeOptions& o);
// How many threads a run may use, how many runs may be under way at once, and whether each has one thread or all
// (colocation/run_width.h). Once the cores are divided.
[[nodiscard]] int RunThreads(const ServeOptions& o);
[[nodiscard]] bool ChoosesWidths(const ServeOptions& o);
[[nodiscard]] int Workers(const ServeOptions& o);
// The cores that threads of runs keep to. None where other processes, or runs on all threads beside one another, may
// want the same ones.
[[nodiscard]] std::vector<int> RunCores(const ServeOptions& o);
[[nodiscard]] std::optional<http::TlsOptions> Tls(const ServeOptions& o);
// Of the memory that this process may have and that the operator gives to all of the server. Says in the log what there
// is no room for.
[[nodiscard]] MemoryBudgets BudgetsFor(const ServeOptions& o, std::uint64_t given);
// Opens the library that they name. The threads of its pool have their seats.
[[nodiscard]] Result<std::shared_ptr<const OrtEnvironment>> StartOrt(const ServeOptions& o, CoreSeats& seats);
// One line with all that the times of runs depend on besides the models.
[[nodiscard]] std::string RunSetting(const ServeOptions& o, const OrtEnvironment& ort);
[[nodiscard]] Result<repository::RepositoryOptions> RepositorySettings(const ServeOptions& o);

}  // namespace tandem
