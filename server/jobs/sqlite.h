#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

// SQLite with our errors. Nothing here is thread-safe: whoever owns a Database guards it.

namespace tandem::jobs {

// One SQL statement with its values, from Database::Prepare. Parameters are bound from the first on; columns count from
// 0. Lives no longer than its database.
class Statement {
 public:
  Statement& Bind(std::int64_t value);
  Statement& Bind(int value) { return Bind(std::int64_t{value}); }
  Statement& Bind(std::uint64_t value) = delete;  // SQLite has no such numbers.
  Statement& Bind(bool value) { return Bind(std::int64_t{value ? 1 : 0}); }
  Statement& Bind(double value);  // NaN becomes NULL.
  Statement& Bind(std::string_view value);
  Statement& Bind(const char* value) { return Bind(std::string_view(value)); }
  Statement& Bind(std::nullopt_t);
  template <typename T>
  Statement& Bind(const std::optional<T>& value) {
    return value ? Bind(*value) : Bind(std::nullopt);
  }

  // To the next row; false when there is none.
  [[nodiscard]] Result<bool> Step();
  // To the end; then it can be bound and run again.
  [[nodiscard]] Status Run();

  [[nodiscard]] bool IsNull(int column) const;
  [[nodiscard]] std::int64_t Whole(int column) const;
  [[nodiscard]] double Number(int column) const;
  [[nodiscard]] std::string Text(int column) const;
  [[nodiscard]] std::optional<std::int64_t> WholeOrNone(int column) const;
  [[nodiscard]] std::optional<double> NumberOrNone(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(sqlite3_stmt* statement, const std::string& file) : statement_(statement), file_(file) {}
  Statement& Bound(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string& file_;  // Owned by the database.
  int next_ = 1;
  int bind_error_ = 0;
};

// An open file in WAL mode. Not movable: statements refer to it.
class Database {
 public:
  static constexpr std::uintmax_t kQuicklyRead = std::uintmax_t{64} << 20;

  // Creates the file, readable by its owner alone, when it is not there. A file that is damaged or is no database is
  // refused, with what to do about it. All of it is read for that when it is small, or was not closed the last time;
  // damage in a large one that was closed shows when it is met.
  [[nodiscard]] static Result<std::unique_ptr<Database>> Open(const std::filesystem::path& file,
                                                              std::uintmax_t quickly_read = kQuicklyRead);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] Result<Statement> Prepare(std::string_view sql);
  // Runs one statement with its values.
  template <typename... Values>
  [[nodiscard]] Status Execute(std::string_view sql, const Values&... values) {
    TANDEM_ASSIGN(Statement statement, Prepare(sql));
    (statement.Bind(values), ...);
    return statement.Run();
  }
  // Several statements, separated by ';'.
  [[nodiscard]] Status RunScript(const std::string& sql);
  // The first column of the first row of a statement that has one.
  [[nodiscard]] Result<std::int64_t> WholeOf(std::string_view sql);

  [[nodiscard]] std::int64_t LastInsertId() const;
  [[nodiscard]] std::int64_t Changes() const;  // Rows that the last statement changed.
  [[nodiscard]] const std::string& file() const { return file_; }

  // Whether a commit waits for the disk. What comes later and waits makes durable what came before. Not in a
  // transaction.
  [[nodiscard]] Status SetDurable(bool durable);

 private:
  explicit Database(std::string file) : file_(std::move(file)) {}
  [[nodiscard]] Status CheckWhole();
  [[nodiscard]] Status Configure();

  const std::string file_;
  sqlite3* db_ = nullptr;  // Owned.
  std::optional<bool> durable_;
};

// All or nothing: rolls back unless it was committed. A failed commit changes nothing.
class SqlTransaction {
 public:
  [[nodiscard]] static Result<SqlTransaction> Begin(Database& database, bool durable);
  ~SqlTransaction();
  SqlTransaction(SqlTransaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  SqlTransaction& operator=(SqlTransaction&&) = delete;
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;

  [[nodiscard]] Status Commit();

 private:
  explicit SqlTransaction(Database& database) : database_(&database) {}

  Database* database_;  // Borrowed; null once it is over.
};

}  // namespace tandem::jobs
