#include "server/jobs/job_store.h"

#include <array>
#include <chrono>
#include <utility>

#include <openssl/evp.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/jobs/job_schema.h"

namespace tandem::jobs {
namespace {

constexpr std::size_t kMaxReasonBytes = 8192;

constexpr std::string_view kSelect =
    "SELECT id, state, name, owner, idempotency_key, spec, model, model_version, priority, created_at, started_at, "
    "ended_at, step, total_steps, epoch, loss, metric_name, metric, best_metric, attempts, retries, next_attempt_at, "
    "reason, published_version, publish_due, baseline, fixed_threads, memory FROM jobs ";

// A row of kSelect.
Result<JobRecord> ToRecord(const Statement& row) {
  const std::optional<JobState> state = ParseJobState(row.Text(1));
  if (!state) {
    return Fail(ErrorCode::kInternal, "job {} has the state '{}', which is not known", row.Whole(0),
                Excerpt(row.Text(1)));
  }
  std::optional<int> fixed_threads;
  if (const auto threads = row.WholeOrNone(26)) fixed_threads = static_cast<int>(*threads);
  return JobRecord{.id = row.Whole(0),
                   .state = *state,
                   .name = row.Text(2),
                   .owner = row.Text(3),
                   .idempotency_key = row.Text(4),
                   .spec = row.Text(5),
                   .model = row.Text(6),
                   .model_version = row.Text(7),
                   .priority = static_cast<int>(row.Whole(8)),
                   .created_at = row.Whole(9),
                   .started_at = row.WholeOrNone(10),
                   .ended_at = row.WholeOrNone(11),
                   .progress = {.step = row.Whole(12),
                                .total_steps = row.Whole(13),
                                .epoch = row.Whole(14),
                                .loss = row.NumberOrNone(15),
                                .metric_name = row.Text(16),
                                .metric = row.NumberOrNone(17),
                                .best_metric = row.NumberOrNone(18)},
                   .attempts = row.Whole(19),
                   .retries = row.Whole(20),
                   .next_attempt_at = row.WholeOrNone(21),
                   .reason = row.Text(22),
                   .published_version = row.Text(23),
                   .publish_due = row.Whole(24) != 0,
                   .baseline = row.NumberOrNone(25),
                   .fixed_threads = fixed_threads,
                   .memory = row.Text(27)};
}

Result<std::string> Sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    return Fail(ErrorCode::kInternal, "OpenSSL has no SHA-256");
  }
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += Format("{:02x}", digest[i]);
  return hex;
}

Error NoSuchJob(JobId id) {
  return {ErrorCode::kNotFound, Format("there is no job {}", id)};
}

std::string StateEvent(std::optional<JobState> from, JobState to, std::string_view action, std::string_view reason) {
  std::string body = "{";
  if (from) body += Format("\"from\":\"{}\",", JobStateName(*from));
  body += Format("\"to\":\"{}\",\"action\":\"{}\"", JobStateName(to), action);
  if (!reason.empty()) body += ",\"reason\":" + JsonString(reason);
  return body + "}";
}

}  // namespace

JobStore::JobStore(StateLock lock, std::unique_ptr<Database> database, const Clock& clock, StoreLimits limits)
    : lock_(std::move(lock)), clock_(clock), limits_(limits), database_(std::move(database)) {}

Result<std::unique_ptr<JobStore>> JobStore::Open(const std::filesystem::path& directory, const Clock& clock,
                                                 StoreLimits limits) {
  TANDEM_ASSIGN(StateLock lock, StateLock::Acquire(directory));
  TANDEM_ASSIGN(std::unique_ptr<Database> database, Database::Open(directory / "jobs.db"));
  TANDEM_TRY(Migrate(*database, JobMigrations()));
  return std::unique_ptr<JobStore>(new JobStore(std::move(lock), std::move(database), clock, limits));
}

std::int64_t JobStore::Now() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock_.WallNow().time_since_epoch()).count();
}

Result<JobRecord> JobStore::Read(JobId id) const {
  TANDEM_ASSIGN(Statement row, database_->Prepare(Format("{}WHERE id = ?", kSelect)));
  row.Bind(id);
  TANDEM_ASSIGN(const bool found, row.Step());
  if (!found) return std::unexpected(NoSuchJob(id));
  return ToRecord(row);
}

Status JobStore::CheckExists(JobId id) const {
  TANDEM_ASSIGN(Statement row, database_->Prepare("SELECT 1 FROM jobs WHERE id = ?"));
  row.Bind(id);
  TANDEM_ASSIGN(const bool found, row.Step());
  if (!found) return std::unexpected(NoSuchJob(id));
  return {};
}

Result<std::optional<JobRecord>> JobStore::FindByKey(const NewJob& job, const std::string& hash) const {
  if (job.idempotency_key.empty()) return std::nullopt;
  TANDEM_ASSIGN(Statement row,
                database_->Prepare("SELECT id, spec_hash FROM jobs WHERE owner = ? AND idempotency_key = ?"));
  row.Bind(job.owner).Bind(job.idempotency_key);
  TANDEM_ASSIGN(const bool found, row.Step());
  if (!found) return std::nullopt;
  const JobId id = row.Whole(0);
  if (row.Text(1) != hash) {
    return Fail(ErrorCode::kConflict, "the idempotency key '{}' came with another job, which is job {}; use a new key",
                Excerpt(job.idempotency_key), id);
  }
  TANDEM_ASSIGN(JobRecord record, Read(id));
  return record;
}

Result<JobStore::Submitted> JobStore::Submit(const NewJob& job) {
  if (job.idempotency_key.size() > kMaxKeyBytes) {
    return Invalid("the idempotency key has {} bytes; at most {} are allowed", job.idempotency_key.size(),
                   kMaxKeyBytes);
  }
  TANDEM_ASSIGN(const std::string hash, Sha256(job.spec));
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_ASSIGN(std::optional<JobRecord> known, FindByKey(job, hash));
  if (known) return Submitted{.job = std::move(*known), .is_new = false};
  TANDEM_ASSIGN(const std::int64_t count, database_->WholeOf("SELECT count(*) FROM jobs"));
  if (count >= limits_.jobs) {
    return Fail(ErrorCode::kUnavailable, "there are {} jobs, which is the limit; delete some that have ended", count);
  }
  const std::optional<std::string> key =
      job.idempotency_key.empty() ? std::nullopt : std::optional(job.idempotency_key);
  TANDEM_TRY(database_->Execute(
      "INSERT INTO jobs (state, name, owner, spec, spec_hash, idempotency_key, model, model_version, priority, "
      "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      JobStateName(JobState::kQueued), job.name, job.owner, job.spec, hash, key, job.model, job.model_version,
      job.priority, Now()));
  const JobId id = database_->LastInsertId();
  TANDEM_TRY(InsertEvent(id, "state", StateEvent(std::nullopt, JobState::kQueued, "submit", "")));
  TANDEM_ASSIGN(JobRecord record, Read(id));
  TANDEM_TRY(transaction.Commit());
  ++state_changes_;
  return Submitted{.job = std::move(record), .is_new = true};
}

Result<JobRecord> JobStore::Get(JobId id) const {
  MutexLock lock(mu_);
  return Read(id);
}

Result<JobPage> JobStore::List(const JobQuery& query) const {
  if (query.limit < 1 || query.limit > JobQuery::kMaxPage) {
    return Invalid("limit is {}; it must be from 1 to {}", query.limit, JobQuery::kMaxPage);
  }
  std::string sql = Format("{}WHERE 1", kSelect);
  if (query.before > 0) sql += " AND id < ?";
  if (query.owner) sql += " AND owner = ?";
  if (query.publish_due) sql += " AND publish_due";
  if (!query.states.empty()) {
    sql += " AND state IN (?";
    for (std::size_t i = 1; i < query.states.size(); ++i) sql += ", ?";
    sql += ")";
  }
  sql += " ORDER BY id DESC LIMIT ?";
  MutexLock lock(mu_);
  TANDEM_ASSIGN(Statement rows, database_->Prepare(sql));
  if (query.before > 0) rows.Bind(query.before);
  if (query.owner) rows.Bind(*query.owner);
  for (const JobState state : query.states) rows.Bind(JobStateName(state));
  rows.Bind(query.limit + 1);  // One more tells whether there is another page.
  JobPage page;
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return page;
    if (std::ssize(page.jobs) == query.limit) break;
    TANDEM_ASSIGN(page.jobs.emplace_back(), ToRecord(rows));
  }
  page.next = page.jobs.back().id;
  return page;
}

Result<std::map<JobState, std::int64_t>> JobStore::CountByState() const {
  std::map<JobState, std::int64_t> counts;
  for (const JobState state : kJobStates) counts[state] = 0;
  MutexLock lock(mu_);
  TANDEM_ASSIGN(Statement rows, database_->Prepare("SELECT state, count(*) FROM jobs GROUP BY state"));
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return counts;
    if (const auto state = ParseJobState(rows.Text(0))) counts[*state] = rows.Whole(1);
  }
}

Result<JobRecord> JobStore::Transition(JobId id, JobAction action, const TransitionFields& fields) {
  const std::string reason = fields.reason.substr(0, kMaxReasonBytes);
  const bool waits = action == JobAction::kRetry || action == JobAction::kRequeue;
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_ASSIGN(const JobRecord before, Read(id));
  const Result<JobState> next = NextState(before.state, action);
  if (!next) return Fail(next.error().code, "job {}: {}", id, next.error().message);
  const std::int64_t now = Now();
  const bool started = action == JobAction::kStart;
  const bool succeeds = action == JobAction::kSucceed;
  TANDEM_TRY(database_->Execute(
      "UPDATE jobs SET state = ?, reason = ?, model_version = ?, attempts = attempts + ?, retries = retries + ?, "
      "started_at = coalesce(started_at, ?), ended_at = ?, next_attempt_at = ?, publish_due = ?, baseline = ?, "
      "fixed_threads = coalesce(fixed_threads, ?) WHERE id = ?",
      JobStateName(*next), reason, fields.model_version.value_or(before.model_version), action == JobAction::kAdmit,
      action == JobAction::kRetry, started ? std::optional(now) : std::nullopt,
      HasEnded(*next) ? std::optional(now) : std::nullopt, waits ? fields.next_attempt_at : std::nullopt,
      succeeds && fields.publish_due, succeeds ? fields.baseline : std::nullopt, fields.fixed_threads, id));
  if (fields.progress) TANDEM_TRY(WriteProgress(id, *fields.progress));
  TANDEM_TRY(InsertEvent(id, "state", StateEvent(before.state, *next, JobActionName(action), reason)));
  TANDEM_ASSIGN(JobRecord after, Read(id));
  TANDEM_TRY(transaction.Commit());
  ++state_changes_;
  return after;
}

Status JobStore::WriteProgress(JobId id, const JobProgress& progress) {
  return database_->Execute(
      "UPDATE jobs SET step = ?, total_steps = ?, epoch = ?, loss = ?, metric_name = ?, metric = ?, best_metric = ? "
      "WHERE id = ?",
      progress.step, progress.total_steps, progress.epoch, progress.loss, progress.metric_name, progress.metric,
      progress.best_metric, id);
}

Status JobStore::SetMemory(JobId id, const std::string& memory) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/false));
  TANDEM_ASSIGN(const JobRecord job, Read(id));
  if (HasEnded(job.state)) {
    return Fail(ErrorCode::kConflict, "job {} is {}; it takes no memory any more", id, JobStateName(job.state));
  }
  TANDEM_TRY(database_->Execute("UPDATE jobs SET memory = ? WHERE id = ?", memory, id));
  return transaction.Commit();
}

Status JobStore::UpdateProgress(JobId id, const JobProgress& progress) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/false));
  TANDEM_ASSIGN(const JobRecord job, Read(id));
  if (HasEnded(job.state)) {
    return Fail(ErrorCode::kConflict, "job {} is {}; it makes no progress any more", id, JobStateName(job.state));
  }
  TANDEM_TRY(WriteProgress(id, progress));
  return transaction.Commit();
}

Status JobStore::SetPublishedVersion(JobId id, const std::string& version, const std::string& note) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_ASSIGN(const JobRecord before, Read(id));
  TANDEM_TRY(database_->Execute("UPDATE jobs SET published_version = ?, publish_due = 0 WHERE id = ?", version, id));
  const bool rolled_back = version.empty();
  const std::string noted = note.empty() ? "" : ",\"note\":" + JsonString(note);
  TANDEM_TRY(
      InsertEvent(id, rolled_back ? "rolled_back" : "published",
                  Format("{{\"version\":{}{}}}", JsonString(rolled_back ? before.published_version : version), noted)));
  return transaction.Commit();
}

Status JobStore::GiveUpPublishing(JobId id, std::string_view kind, std::string_view why) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_TRY(CheckExists(id));
  TANDEM_TRY(database_->Execute("UPDATE jobs SET publish_due = 0 WHERE id = ?", id));
  TANDEM_TRY(InsertEvent(id, kind, Format("{{\"why\":{}}}", JsonString(why))));
  return transaction.Commit();
}

Status JobStore::Delete(JobId id) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_ASSIGN(const JobRecord job, Read(id));
  if (!HasEnded(job.state)) {
    return Fail(ErrorCode::kConflict, "job {} is {}; only a job that has ended can be deleted: cancel it first", id,
                JobStateName(job.state));
  }
  TANDEM_TRY(database_->Execute("DELETE FROM jobs WHERE id = ?", id));
  TANDEM_TRY(transaction.Commit());
  ++state_changes_;
  return {};
}

}  // namespace tandem::jobs
