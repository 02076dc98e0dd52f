// What a job leaves behind as it runs: events, series, checkpoints.

#include <algorithm>
#include <cmath>
#include <format>

#include "api/wire/json_text.h"
#include "server/jobs/job_store.h"

namespace tandem::jobs {
namespace {

constexpr int kMaxEvents = 1000;  // In one answer.
constexpr std::size_t kMaxSeriesName = 64;

// The newest point of a series and the one before it, which is there to stay.
struct SeriesEnd {
  std::optional<std::int64_t> newest;
  std::optional<std::int64_t> before;
};

Result<SeriesEnd> ReadEnd(Database& database, std::int64_t series) {
  SeriesEnd end;
  TANDEM_ASSIGN(Statement rows,
                database.Prepare("SELECT step FROM points WHERE series = ? ORDER BY step DESC LIMIT 2"));
  rows.Bind(series);
  TANDEM_ASSIGN(const bool first, rows.Step());
  if (!first) return end;
  end.newest = rows.Whole(0);
  TANDEM_ASSIGN(const bool second, rows.Step());
  if (second) end.before = rows.Whole(0);
  return end;
}

// Puts a point at the end. One that stands too close to the one before it stays only while it is the newest.
Status Append(Database& database, std::int64_t series, std::int64_t spacing, const SeriesPoint& point, SeriesEnd& end) {
  if (end.newest && point.step <= *end.newest) {
    TANDEM_TRY(database.Execute("DELETE FROM points WHERE series = ? AND step >= ?", series, point.step));
    TANDEM_ASSIGN(end, ReadEnd(database, series));
  }
  if (end.before && *end.newest - *end.before < spacing) {
    TANDEM_TRY(database.Execute("DELETE FROM points WHERE series = ? AND step = ?", series, *end.newest));
    end.newest = end.before;
  }
  TANDEM_TRY(
      database.Execute("INSERT INTO points (series, step, value) VALUES (?, ?, ?)", series, point.step, point.value));
  end = {.newest = point.step, .before = end.newest};
  return {};
}

Result<std::vector<std::int64_t>> ReadSteps(Database& database, std::int64_t series) {
  std::vector<std::int64_t> steps;
  TANDEM_ASSIGN(Statement rows, database.Prepare("SELECT step FROM points WHERE series = ? ORDER BY step"));
  rows.Bind(series);
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return steps;
    steps.push_back(rows.Whole(0));
  }
}

}  // namespace

Result<std::int64_t> JobStore::InsertEvent(JobId job, std::string_view kind, std::string_view body) {
  TANDEM_TRY(
      database_->Execute("INSERT INTO events (job, time, kind, body) VALUES (?, ?, ?, ?)", job, Now(), kind, body));
  const std::int64_t sequence = database_->LastInsertId();
  TANDEM_TRY(
      database_->Execute("DELETE FROM events WHERE job = ? AND sequence <= "
                         "(SELECT sequence FROM events WHERE job = ? ORDER BY sequence DESC LIMIT 1 OFFSET ?)",
                         job, job, limits_.events_per_job));
  return sequence;
}

Result<std::int64_t> JobStore::AddEvent(JobId job, std::string_view kind, std::string_view body) {
  if (kind.empty() || kind.size() > kMaxKindBytes || !IsPrintableUtf8(kind)) {
    return Invalid("the kind of an event is '{}'; it must have 1 to {} bytes of printable text", Excerpt(kind),
                   kMaxKindBytes);
  }
  if (body.size() > kMaxBodyBytes) {
    return Fail(ErrorCode::kTooLarge, "an event has {} bytes; at most {} are kept", body.size(), kMaxBodyBytes);
  }
  TANDEM_TRY(CheckJson(body));
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/false));
  TANDEM_TRY(CheckExists(job));
  TANDEM_ASSIGN(const std::int64_t sequence, InsertEvent(job, kind, body));
  TANDEM_TRY(transaction.Commit());
  return sequence;
}

Result<std::vector<JobEvent>> JobStore::EventsAfter(std::optional<JobId> job, std::int64_t sequence, int limit) const {
  if (limit < 1 || limit > kMaxEvents) return Invalid("limit is {}; it must be from 1 to {}", limit, kMaxEvents);
  MutexLock lock(mu_);
  if (job) TANDEM_TRY(CheckExists(*job));
  TANDEM_ASSIGN(Statement rows,
                database_->Prepare(job ? "SELECT sequence, job, time, kind, body FROM events WHERE sequence > ? AND "
                                         "job = ? ORDER BY sequence LIMIT ?"
                                       : "SELECT sequence, job, time, kind, body FROM events WHERE sequence > ? ORDER "
                                         "BY sequence LIMIT ?"));
  rows.Bind(sequence);
  if (job) rows.Bind(*job);
  rows.Bind(limit);
  std::vector<JobEvent> events;
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return events;
    events.push_back({rows.Whole(0), rows.Whole(1), rows.Whole(2), rows.Text(3), rows.Text(4)});
  }
}

Result<JobStore::SeriesRow> JobStore::FindOrAddSeries(JobId job, const std::string& name) {
  {
    TANDEM_ASSIGN(Statement row, database_->Prepare("SELECT id, spacing FROM series WHERE job = ? AND name = ?"));
    row.Bind(job).Bind(name);
    TANDEM_ASSIGN(const bool found, row.Step());
    if (found) return SeriesRow{row.Whole(0), row.Whole(1)};
  }
  TANDEM_TRY(CheckExists(job));
  TANDEM_ASSIGN(Statement count, database_->Prepare("SELECT count(*) FROM series WHERE job = ?"));
  count.Bind(job);
  TANDEM_TRY(count.Step());
  if (count.Whole(0) >= static_cast<std::int64_t>(limits_.series_per_job)) {
    return Invalid("job {} has {} series, which is the limit; '{}' is not kept", job, limits_.series_per_job,
                   Excerpt(name));
  }
  TANDEM_TRY(database_->Execute("INSERT INTO series (job, name) VALUES (?, ?)", job, name));
  return SeriesRow{database_->LastInsertId(), 1};
}

Status JobStore::ThinSeries(SeriesRow series) {
  {
    TANDEM_ASSIGN(Statement count, database_->Prepare("SELECT count(*) FROM points WHERE series = ?"));
    count.Bind(series.id);
    TANDEM_TRY(count.Step());
    if (count.Whole(0) <= static_cast<std::int64_t>(limits_.points_per_series)) return {};
  }
  TANDEM_ASSIGN(const std::vector<std::int64_t> steps, ReadSteps(*database_, series.id));
  // Half as many stay, so that the next time is far.
  const std::int64_t half = static_cast<std::int64_t>(limits_.points_per_series) / 2;
  const std::int64_t spacing = std::max(2 * series.spacing, (steps.back() - steps.front() + half - 1) / half);
  TANDEM_ASSIGN(Statement drop, database_->Prepare("DELETE FROM points WHERE series = ? AND step = ?"));
  std::int64_t kept = steps.front();
  for (std::size_t i = 1; i + 1 < steps.size(); ++i) {
    if (steps[i] - kept >= spacing) {
      kept = steps[i];
    } else {
      TANDEM_TRY(drop.Bind(series.id).Bind(steps[i]).Run());
    }
  }
  return database_->Execute("UPDATE series SET spacing = ? WHERE id = ?", spacing, series.id);
}

Status JobStore::AddSeriesPoints(JobId job, const std::string& name, std::span<const SeriesPoint> points) {
  if (name.empty() || name.size() > kMaxSeriesName || !IsPrintableUtf8(name)) {
    return Invalid("the name of a series is '{}'; it must have 1 to {} bytes of printable text", Excerpt(name),
                   kMaxSeriesName);
  }
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/false));
  TANDEM_ASSIGN(const SeriesRow series, FindOrAddSeries(job, name));
  TANDEM_ASSIGN(SeriesEnd end, ReadEnd(*database_, series.id));
  for (const SeriesPoint& point : points) {
    if (std::isfinite(point.value)) TANDEM_TRY(Append(*database_, series.id, series.spacing, point, end));
  }
  TANDEM_TRY(ThinSeries(series));
  return transaction.Commit();
}

Result<std::map<std::string, std::vector<SeriesPoint>>> JobStore::Series(JobId job) const {
  MutexLock lock(mu_);
  TANDEM_TRY(CheckExists(job));
  TANDEM_ASSIGN(
      Statement rows,
      database_->Prepare("SELECT name, step, value FROM series JOIN points ON points.series = series.id WHERE "
                         "job = ? ORDER BY series.id, step"));
  rows.Bind(job);
  std::map<std::string, std::vector<SeriesPoint>> series;
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return series;
    series[rows.Text(0)].push_back({rows.Whole(1), rows.Number(2)});
  }
}

Status JobStore::AddCheckpoint(const CheckpointRecord& checkpoint) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_TRY(CheckExists(checkpoint.job));
  TANDEM_TRY(database_->Execute(
      "INSERT OR REPLACE INTO checkpoints (job, step, path, bytes, checksum, time, good) VALUES (?, ?, ?, ?, ?, ?, ?)",
      checkpoint.job, checkpoint.step, checkpoint.path, checkpoint.bytes, checkpoint.checksum, Now(), checkpoint.good));
  return transaction.Commit();
}

Status JobStore::MarkCheckpointBad(JobId job, std::int64_t step) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_TRY(database_->Execute("UPDATE checkpoints SET good = 0 WHERE job = ? AND step = ?", job, step));
  if (database_->Changes() == 0) {
    return Fail(ErrorCode::kNotFound, "job {} has no checkpoint of step {}", job, step);
  }
  return transaction.Commit();
}

Status JobStore::RemoveCheckpoint(JobId job, std::int64_t step) {
  MutexLock lock(mu_);
  TANDEM_ASSIGN(SqlTransaction transaction, SqlTransaction::Begin(*database_, /*durable=*/true));
  TANDEM_TRY(database_->Execute("DELETE FROM checkpoints WHERE job = ? AND step = ?", job, step));
  if (database_->Changes() == 0) {
    return Fail(ErrorCode::kNotFound, "job {} has no checkpoint of step {}", job, step);
  }
  return transaction.Commit();
}

Result<std::vector<CheckpointRecord>> JobStore::Checkpoints(JobId job) const {
  MutexLock lock(mu_);
  TANDEM_TRY(CheckExists(job));
  TANDEM_ASSIGN(Statement rows,
                database_->Prepare("SELECT job, step, path, bytes, checksum, time, good FROM checkpoints WHERE job = ? "
                                   "ORDER BY step DESC"));
  rows.Bind(job);
  std::vector<CheckpointRecord> checkpoints;
  while (true) {
    TANDEM_ASSIGN(const bool found, rows.Step());
    if (!found) return checkpoints;
    checkpoints.push_back({.job = rows.Whole(0),
                           .step = rows.Whole(1),
                           .path = rows.Text(2),
                           .bytes = rows.Whole(3),
                           .checksum = rows.Text(4),
                           .time = rows.Whole(5),
                           .good = rows.Whole(6) != 0});
  }
}

}  // namespace tandem::jobs
