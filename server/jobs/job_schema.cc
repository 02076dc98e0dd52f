#include "server/jobs/job_schema.h"

#include <array>
#include <cstdint>

#include "api/base/format.h"

namespace tandem::jobs {
namespace {

constexpr std::int64_t kApplicationId = 0x746E646D;  // "tndm", in the header of the file.

constexpr const char* kVersion1 = R"sql(
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  state TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  spec TEXT NOT NULL,
  spec_hash TEXT NOT NULL,
  idempotency_key TEXT,
  model TEXT NOT NULL,
  model_version TEXT NOT NULL,
  priority INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  step INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  loss REAL,
  metric_name TEXT NOT NULL DEFAULT '',
  metric REAL,
  best_metric REAL,
  attempts INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER,
  reason TEXT NOT NULL DEFAULT '',
  published_version TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  time INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (job, sequence);

CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  spacing INTEGER NOT NULL DEFAULT 1,
  UNIQUE (job, name)
) STRICT;
CREATE TABLE points (
  series INTEGER NOT NULL REFERENCES series (id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (series, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  path TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  time INTEGER NOT NULL,
  good INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (job, step)
) STRICT, WITHOUT ROWID;
)sql";

constexpr const char* kVersion2 = R"sql(
ALTER TABLE jobs ADD COLUMN publish_due INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET owner = 'default' WHERE owner = '';
)sql";

constexpr const char* kVersion3 = R"sql(
ALTER TABLE jobs ADD COLUMN baseline REAL;
)sql";

constexpr const char* kVersion4 = R"sql(
ALTER TABLE jobs ADD COLUMN fixed_threads INTEGER CHECK (fixed_threads BETWEEN 1 AND 4096);
)sql";

constexpr const char* kVersion5 = R"sql(
ALTER TABLE jobs ADD COLUMN memory TEXT NOT NULL DEFAULT '';
)sql";

// The version of the database; 0 for an empty one. Fails for what is not ours.
Result<std::int64_t> VersionOf(Database& database) {
  TANDEM_ASSIGN(const std::int64_t tables, database.WholeOf("SELECT count(*) FROM sqlite_schema"));
  if (tables == 0) return 0;
  TANDEM_ASSIGN(const std::int64_t application, database.WholeOf("PRAGMA application_id"));
  if (application != kApplicationId) {
    return Fail(ErrorCode::kConflict, "'{}' is a database of another program; it is left as it is", database.file());
  }
  return database.WholeOf("PRAGMA user_version");
}

}  // namespace

std::span<const std::string> JobMigrations() {
  static const std::array<std::string, 5> migrations = {kVersion1, kVersion2, kVersion3, kVersion4, kVersion5};
  return migrations;
}

Status Migrate(Database& database, std::span<const std::string> migrations) {
  const auto newest = static_cast<std::int64_t>(migrations.size());
  TANDEM_ASSIGN(const std::int64_t version, VersionOf(database));
  if (version == newest) return {};
  if (version > newest || version < 0) {
    return Fail(
        ErrorCode::kUnsupported,
        "the job database '{}' has version {}, and this program knows none beyond {}; use the program that made "
        "it or a newer one, or another state directory",
        database.file(), version, newest);
  }
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(database, /*durable=*/true));
  for (std::int64_t next = version; next < newest; ++next) {
    TANDEM_TRY(database.RunScript(migrations[static_cast<std::size_t>(next)]));
  }
  TANDEM_TRY(database.RunScript(Format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, newest)));
  return transaction.Commit();
}

}  // namespace tandem::jobs
