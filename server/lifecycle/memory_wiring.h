#pragma once

#include <memory>
#include <vector>

#include "api/base/result.h"
#include "server/lifecycle/memory_budgets.h"
#include "server/lifecycle/serve_options.h"
#include "server/memory/limit_watch.h"
#include "server/memory/memory_account.h"
#include "server/repository/version_memory.h"

namespace tandem {

// How the machine's memory is shared out in this server. Lives as long as the server does.
struct MemoryParts {
  MemoryBudgets budgets;                            // Of the server's own part.
  std::shared_ptr<MemoryAccount> account;           // Shared with what is counted in it.
  std::vector<std::unique_ptr<CountedMemory>> own;  // The server's own, whatever it serves.
  std::unique_ptr<LimitWatch> watch;                // Last: it tells the account.
};

// As the options want it; the cores are divided. Bounds of the options that the memory has no room for are lowered,
// which the log then says.
[[nodiscard]] Result<MemoryParts> SetUpMemory(ServeOptions& options);

// Counts versions that are loaded, with what their runs turn out to take, and says in the log when there is no room for
// one.
[[nodiscard]] repository::MemoryCounter CountVersions(std::shared_ptr<MemoryAccount> account);

}  // namespace tandem
