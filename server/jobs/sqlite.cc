#include "server/jobs/sqlite.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "api/base/format.h"

namespace tandem::jobs {
namespace {

std::string Reason(sqlite3* db, int code) {
  std::string reason = db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db);
  const int system = db == nullptr ? 0 : sqlite3_system_errno(db);
  if (system != 0) reason += ": " + std::generic_category().message(system);
  return reason;
}

Error Damaged(const std::string& file, std::string_view reason) {
  return {ErrorCode::kInternal,
          Format("the job database '{0}' is damaged or no database ({1}); put a copy from before in its place, or "
                 "move '{0}' away together with '{0}-wal' and '{0}-shm' to begin with no jobs",
                 file, reason)};
}

Error SqliteError(const std::string& file, sqlite3* db, int code) {
  const std::string reason = Reason(db, code);
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return {ErrorCode::kUnavailable,
              Format("the job database '{}' cannot grow, and nothing was changed: {}; make room on its disk", file,
                     reason)};
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {ErrorCode::kUnavailable, Format("the job database '{}' cannot be written, and nothing was changed: "
                                              "{}; its folder and disk must allow writing",
                                              file, reason)};
    case SQLITE_CANTOPEN:
      return {ErrorCode::kUnavailable, Format("the job database '{}' cannot be opened: {}", file, reason)};
    case SQLITE_IOERR:
      return {ErrorCode::kUnavailable,
              Format("the job database '{}' cannot be read or written, and nothing was changed: {}", file, reason)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, Format("the job database '{}' is in use by another program", file)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Damaged(file, reason);
    default: return {ErrorCode::kInternal, Format("the job database '{}': {}", file, reason)};
  }
}

// SQLite gives its other files the mode of this one.
Status CreatePrivately(const std::string& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return Fail(ErrorCode::kUnavailable, "the job database '{}' cannot be opened for writing: {}", file,
                std::generic_category().message(errno));
  }
  ::close(descriptor);
  return {};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement& Statement::Bound(int code) {
  ++next_;
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
  return *this;
}

Statement& Statement::Bind(std::int64_t value) {
  return Bound(sqlite3_bind_int64(statement_.get(), next_, value));
}

Statement& Statement::Bind(double value) {
  return Bound(sqlite3_bind_double(statement_.get(), next_, value));
}

Statement& Statement::Bind(std::string_view value) {
  // A null pointer would be NULL, and not an empty text.
  const char* const text = value.empty() ? "" : value.data();
  return Bound(sqlite3_bind_text64(statement_.get(), next_, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

Statement& Statement::Bind(std::nullopt_t) {
  return Bound(sqlite3_bind_null(statement_.get(), next_));
}

Result<bool> Statement::Step() {
  sqlite3* const db = sqlite3_db_handle(statement_.get());
  if (bind_error_ != SQLITE_OK) return std::unexpected(SqliteError(file_, nullptr, bind_error_));
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Error error = SqliteError(file_, db, code);
  sqlite3_reset(statement_.get());
  return std::unexpected(std::move(error));
}

Status Statement::Run() {
  while (true) {
    TANDEM_ASSIGN(const bool row, Step());
    if (!row) break;
  }
  sqlite3_reset(statement_.get());
  next_ = 1;
  return {};
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::Whole(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::Number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::Text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::optional<std::int64_t> Statement::WholeOrNone(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Whole(column);
}

std::optional<double> Statement::NumberOrNone(int column) const {
  if (IsNull(column)) return std::nullopt;
  return Number(column);
}

Result<std::unique_ptr<Database>> Database::Open(const std::filesystem::path& file, std::uintmax_t quickly_read) {
  std::unique_ptr<Database> database(new Database(file.string()));
  TANDEM_TRY(CreatePrivately(database->file_));
  // Whoever closes a database removes its log.
  std::error_code ec;
  const bool was_closed = !std::filesystem::exists(database->file_ + "-wal", ec);
  const bool is_small = std::filesystem::file_size(file, ec) <= quickly_read;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(database->file_.c_str(), &database->db_, kFlags, nullptr);
  if (code != SQLITE_OK) return std::unexpected(SqliteError(database->file_, database->db_, code));
  // Another program that looks at the file must not make us fail.
  sqlite3_busy_timeout(database->db_, 5000);
  if (is_small || !was_closed) TANDEM_TRY(database->CheckWhole());
  TANDEM_TRY(database->Configure());
  return database;
}

Database::~Database() {
  sqlite3_close(db_);
}

Status Database::CheckWhole() {
  TANDEM_ASSIGN(Statement check, Prepare("PRAGMA quick_check(1)"));
  TANDEM_ASSIGN(const bool told, check.Step());
  if (const std::string verdict = told ? check.Text(0) : ""; verdict != "ok") {
    return std::unexpected(Damaged(file_, verdict));
  }
  return {};
}

Status Database::Configure() {
  {
    TANDEM_ASSIGN(Statement mode, Prepare("PRAGMA journal_mode=WAL"));
    TANDEM_ASSIGN(const bool told, mode.Step());
    if (!told || mode.Text(0) != "wal") {
      return Fail(ErrorCode::kUnavailable, "the job database '{}' cannot be written beside (no WAL on this disk)",
                  file_);
    }
  }
  TANDEM_TRY(Execute("PRAGMA foreign_keys=ON"));
  return SetDurable(true);
}

Result<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return std::unexpected(SqliteError(file_, db_, code));
  return Statement(statement, file_);
}

Status Database::RunScript(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return std::unexpected(SqliteError(file_, db_, code));
  return {};
}

Result<std::int64_t> Database::WholeOf(std::string_view sql) {
  TANDEM_ASSIGN(Statement statement, Prepare(sql));
  TANDEM_ASSIGN(const bool row, statement.Step());
  return row ? statement.Whole(0) : 0;
}

std::int64_t Database::LastInsertId() const {
  return sqlite3_last_insert_rowid(db_);
}

std::int64_t Database::Changes() const {
  return sqlite3_changes64(db_);
}

Status Database::SetDurable(bool durable) {
  if (durable_ == durable) return {};
  TANDEM_TRY(Execute(durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  durable_ = durable;
  return {};
}

Result<SqlTransaction> SqlTransaction::Begin(Database& database, bool durable) {
  TANDEM_TRY(database.SetDurable(durable));
  TANDEM_TRY(database.Execute("BEGIN IMMEDIATE"));
  return SqlTransaction(database);
}

SqlTransaction::~SqlTransaction() {
  if (database_ == nullptr) return;
  // An error such as a full disk may have rolled it back already: then this one fails, and nothing is lost.
  const Status ignored = database_->Execute("ROLLBACK");
}

Status SqlTransaction::Commit() {
  TANDEM_TRY(database_->Execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace tandem::jobs
