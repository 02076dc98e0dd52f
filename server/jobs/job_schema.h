#pragma once

#include <span>
#include <string>

#include "server/jobs/sqlite.h"

namespace tandem::jobs {

// What leads from each version of the job database to the next; the first makes version 1 of an empty file. A released
// entry never changes: a change of the tables is a new entry.
[[nodiscard]] std::span<const std::string> JobMigrations();

// Brings the database to the newest version, all or nothing. A database of a newer program, and one that is not ours,
// is refused and left as it is.
[[nodiscard]] Status Migrate(Database& database, std::span<const std::string> migrations);

}  // namespace tandem::jobs
