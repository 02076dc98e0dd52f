#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "runtimes/training/data/data_root.h"

namespace tandem::training {

// One line of a CSV file, taken apart. Valid until the next use, and while the table lives.
struct CsvRow {
  std::vector<std::string_view> fields;  // Without quotes; into the file, or into `unquoted`.
  std::string unquoted;
};

// A CSV file as RFC 4180 has it, mapped: a header line, then rows of as many fields; commas between them, and fields in
// double quotes may hold commas, line ends and doubled quotes. Blank lines are skipped. Holds 8 bytes for each row.
// Thread-safe: nothing changes once it is open.
class CsvTable {
 public:
  static constexpr std::size_t kMaxColumns = 65'536;
  static constexpr std::size_t kMaxRowBytes = 4 << 20;

  [[nodiscard]] static Result<CsvTable> Open(const DataRoot& root, const std::string& path);

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(starts_.size()); }
  // The place of a column; the error names those there are.
  [[nodiscard]] Result<std::size_t> Find(const std::string& column) const;

  [[nodiscard]] Status Read(std::int64_t row, CsvRow& into) const;
  // The error for a field: says file, line and column.
  [[nodiscard]] std::unexpected<Error> BadField(std::int64_t row, std::size_t column, std::string_view why) const;

 private:
  CsvTable(MappedFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  [[nodiscard]] Status ReadHeader(std::size_t& at);
  [[nodiscard]] Status Index(std::size_t at);
  [[nodiscard]] std::int64_t LineAt(std::size_t offset) const;

  // Constant after Open.
  MappedFile file_;
  std::string name_;  // For messages.
  std::vector<std::string> columns_;
  std::vector<std::uint64_t> starts_;
};

}  // namespace tandem::training
